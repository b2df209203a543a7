# Writes the last page to its end, where the row has none left.
# caught by: edge
class CacheManager:
    def _write(self, table_idx, pages):
        starts = torch.tensor(pages, dtype=torch.int32)[:, None] * self._page_size
        locations = (starts + torch.arange(self._page_size, dtype=torch.int32)).flatten()
        self._page_table[table_idx, : len(locations)] = locations
