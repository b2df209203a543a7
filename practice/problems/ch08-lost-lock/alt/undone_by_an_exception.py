# Locks, tries, and undoes the lock on every way out that is not the good one.
import contextlib


class CacheManager:
    def reserve(self, table_idx, input_ids, num_tokens):
        prefix = self._tree.match(input_ids[:-1])
        with contextlib.ExitStack() as undo:
            self._tree.lock(prefix)
            undo.callback(self._tree.unlock, prefix)
            pages = prefix.pages()
            wanted = (num_tokens + self._page_size - 1) // self._page_size - len(pages)
            if wanted > self._allocator.num_free + self._tree.num_evictable:
                return None
            while self._allocator.num_free < wanted:
                self._allocator.free(self._tree.evict(1))
            pages += self._allocator.allocate(wanted, pages[-1] if pages else None)
            self._write(table_idx, pages)
            undo.pop_all()
        return CacheHandle(pages, prefix.cached_len, prefix)
