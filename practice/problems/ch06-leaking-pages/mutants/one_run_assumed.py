# Takes the pages to be neighbours and counts on from the first.
# caught by: sample
class CacheManager:
    def reserve(self, table_idx, num_tokens):
        count = -(-num_tokens // self._page_size)
        if count > self._allocator.num_free:
            return None
        pages = self._allocator.allocate(count)
        self._place(table_idx, pages)
        return BaseCacheHandle(pages)

    def _place(self, table_idx, pages):
        row = self._page_table[table_idx]
        count = min(len(row), len(pages) * self._page_size)
        row[:count] = torch.arange(count) + pages[0] * self._page_size
