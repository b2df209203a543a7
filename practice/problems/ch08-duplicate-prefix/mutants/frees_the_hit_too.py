# Frees whatever the tree knew, and so the pages of its own hit under the tree.
# caught by: edge
class CacheManager:
    def cache_req(self, req):
        old = _handle(req)
        num_pages = req.cached_len // self._page_size
        ids = req.input_ids[: num_pages * self._page_size].tolist()
        known = self._tree.match(ids).cached_len // self._page_size
        prefix = self._tree.insert(ids, old.pages[:num_pages])
        self._tree.lock(prefix)
        self._tree.unlock(old.prefix)
        pages = prefix.pages() + old.pages[num_pages:]
        self._write(req.table_idx, pages)
        self._allocator.free(old.pages[:known])
        req.cache_handle = CacheHandle(pages, prefix.cached_len, prefix)
