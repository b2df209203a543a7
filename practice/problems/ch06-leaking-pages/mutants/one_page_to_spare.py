# Adds a page in any case, also where the last one is full.
# caught by: edge
class CacheManager:
    def reserve(self, table_idx, num_tokens):
        count = num_tokens // self._page_size + 1
        if count > self._allocator.num_free:
            return None
        pages = self._allocator.allocate(count)
        self._write(table_idx, pages)
        return BaseCacheHandle(pages)
