# Writes the last page to its end, where the row has none left.
# caught by: edge
class CacheManager:
    def reserve(self, table_idx, num_tokens):
        count = -(-num_tokens // self._page_size)
        if count > self._allocator.num_free:
            return None
        pages = self._allocator.allocate(count)
        self._place(table_idx, pages)
        return BaseCacheHandle(pages)

    def _place(self, table_idx, pages):
        starts = torch.tensor(pages, dtype=torch.int32)[:, None] * self._page_size
        locations = (starts + torch.arange(self._page_size, dtype=torch.int32)).flatten()
        self._page_table[table_idx, : len(locations)] = locations
