# Locks the prefix when the request is sure of its place, after the eviction that may have hit it.
# caught by: sample
class CacheManager:
    def reserve(self, table_idx: int, input_ids: list[int], num_tokens: int) -> CacheHandle | None:
        """Places for `num_tokens` tokens of the request in this row, or None: they do not fit.

        It begins with the longest prefix of its prompt that the tree knows, which is locked for
        it. That is never the whole prompt: the logits of its last token are what the request
        came for. Prefixes that nobody uses are evicted as needed.
        """
        prefix = self._tree.match(input_ids[:-1])
        shared = prefix.pages()
        count = -(-num_tokens // self._page_size) - len(shared)
        missing = count - self._allocator.num_free
        if missing > self._tree.num_evictable:
            return None
        if missing > 0:
            self._allocator.free(self._tree.evict(missing))
        pages = shared + self._allocator.allocate(count, after=shared[-1] if shared else None)
        self._tree.lock(prefix)
        self._write(table_idx, pages)
        return CacheHandle(pages, prefix.cached_len, prefix)
