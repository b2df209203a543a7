# Matches before and after, and writes page by page where the tree had a copy of its own.
class CacheManager:
    def cache_req(self, req):
        handle, size = req.cache_handle, self._page_size
        computed = req.input_ids[: req.cached_len].tolist()
        whole = len(computed) // size
        pages = list(handle.pages)
        self._tree.insert(computed, pages[:whole])
        prefix = self._tree.match(computed)
        self._tree.lock(prefix)
        spare = []
        for index, page in enumerate(prefix.pages()):
            if page != pages[index]:
                spare.append(pages[index])
                pages[index] = page
                for offset in range(size):
                    column = index * size + offset
                    self._page_table[req.table_idx, column] = page * size + offset
        self._tree.unlock(handle.prefix)
        self._allocator.free(spare)
        req.cache_handle = CacheHandle(pages, whole * size, prefix)
