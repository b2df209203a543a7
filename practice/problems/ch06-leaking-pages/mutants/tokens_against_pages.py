# Compares tokens with pages.
# caught by: sample
class CacheManager:
    def reserve(self, table_idx, num_tokens):
        if num_tokens > self._allocator.num_free:
            return None
        pages = self._allocator.allocate(-(-num_tokens // self._page_size))
        self._write(table_idx, pages)
        return BaseCacheHandle(pages)
