# Refuses a request that takes the last page.
# caught by: edge
class CacheManager:
    def reserve(self, table_idx, num_tokens):
        count = -(-num_tokens // self._page_size)
        if count >= self._allocator.num_free:
            return None
        pages = self._allocator.allocate(count)
        self._write(table_idx, pages)
        return BaseCacheHandle(pages)
