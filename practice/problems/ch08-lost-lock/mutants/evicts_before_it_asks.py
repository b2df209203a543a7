# Evicts what it can before it knows whether that is enough.
# caught by: sample
class CacheManager:
    def reserve(self, table_idx, input_ids, num_tokens):
        prefix = self._tree.match(input_ids[:-1])
        shared = prefix.pages()
        count = -(-num_tokens // self._page_size) - len(shared)
        self._tree.lock(prefix)
        missing = count - self._allocator.num_free
        if missing > 0:
            self._allocator.free(self._tree.evict(min(missing, self._tree.num_evictable)))
        if count > self._allocator.num_free:
            self._tree.unlock(prefix)
            return None
        pages = shared + self._allocator.allocate(count, after=shared[-1] if shared else None)
        self._write(table_idx, pages)
        return CacheHandle(pages, prefix.cached_len, prefix)
