# Takes pages for the whole request and leaves those behind the hit unused.
# caught by: sample
class CacheManager:
    def reserve(self, table_idx, input_ids, num_tokens):
        prefix = self._tree.match(input_ids[:-1])
        shared = prefix.pages()
        count = -(-num_tokens // self._page_size)
        self._tree.lock(prefix)
        missing = count - self._allocator.num_free
        if missing > self._tree.num_evictable:
            self._tree.unlock(prefix)
            return None
        if missing > 0:
            self._allocator.free(self._tree.evict(missing))
        pages = shared + self._allocator.allocate(count, after=shared[-1] if shared else None)
        self._write(table_idx, pages)
        return CacheHandle(pages, prefix.cached_len, prefix)
