# Works out how much can be evicted beside the prefix, so that nothing is locked before it is sure.
class CacheManager:
    def reserve(self, table_idx, input_ids, num_tokens):
        prefix = self._tree.match(input_ids[:-1])
        shared = prefix.pages()
        unlocked = sum(len(node.pages) for node in prefix.node.path() if not node.lock_count)
        count = -(-num_tokens // self._page_size) - len(shared)
        missing = max(0, count - self._allocator.num_free)
        if missing > self._tree.num_evictable - unlocked:
            return None
        self._tree.lock(prefix)
        self._allocator.free(self._tree.evict(missing))
        after = shared[-1] if shared else None
        pages = [*shared, *self._allocator.allocate(count, after=after)]
        self._write(table_idx, pages)
        return CacheHandle(pages, prefix.cached_len, prefix)
