# Deals the tokens out over the pages, where a page is to be filled first.
# caught by: sample
class CacheManager:
    def _write(self, table_idx, pages):
        starts = torch.tensor(pages, dtype=torch.int32)[:, None] * self._page_size
        locations = (starts + torch.arange(self._page_size, dtype=torch.int32)).T.flatten()
        row = self._page_table[table_idx]
        row[: len(locations)] = locations[: len(row)]
