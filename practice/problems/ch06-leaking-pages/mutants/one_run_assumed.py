# Takes the pages to be neighbours and counts on from the first.
# caught by: sample
class CacheManager:
    def _write(self, table_idx, pages):
        row = self._page_table[table_idx]
        count = min(len(row), len(pages) * self._page_size)
        row[:count] = torch.arange(count) + pages[0] * self._page_size
