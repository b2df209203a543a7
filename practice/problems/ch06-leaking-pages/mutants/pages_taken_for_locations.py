# Counts on from the page's number, not from its first location.
# caught by: sample
class CacheManager:
    def _write(self, table_idx, pages):
        starts = torch.tensor(pages, dtype=torch.int32)[:, None]
        locations = (starts + torch.arange(self._page_size, dtype=torch.int32)).flatten()
        row = self._page_table[table_idx]
        row[: len(locations)] = locations[: len(row)]
