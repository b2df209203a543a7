# Writes the row in any case, then frees what the request no longer names.
class CacheManager:
    def cache_req(self, req):
        old = req.cache_handle
        count = req.cached_len // self._page_size
        prefix = self._tree.insert(
            req.input_ids.tolist()[: count * self._page_size], old.pages[:count]
        )
        pages = [*prefix.pages(), *old.pages[count:]]
        req.cache_handle = CacheHandle(pages=pages, cached_len=prefix.cached_len, prefix=prefix)
        self._write(req.table_idx, pages)
        self._tree.lock(prefix)
        self._tree.unlock(old.prefix)
        self._allocator.free(set(old.pages) - set(pages))
