# Takes what there is, and gives nothing back when that was not enough.
# caught by: edge
class CacheManager:
    def reserve(self, table_idx, num_tokens):
        count = -(-num_tokens // self._page_size)
        pages = self._allocator.allocate(min(count, self._allocator.num_free))
        if len(pages) < count:
            return None
        self._write(table_idx, pages)
        return BaseCacheHandle(pages)
