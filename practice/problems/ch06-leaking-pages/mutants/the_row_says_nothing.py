# Hands the pages out and leaves the page table as it was.
# caught by: sample
class CacheManager:
    def reserve(self, table_idx, num_tokens):
        count = -(-num_tokens // self._page_size)
        if count > self._allocator.num_free:
            return None
        return BaseCacheHandle(self._allocator.allocate(count))
