# Gives a known beginning back to nobody: it keeps its own copy and stays out of the tree.
# caught by: sample
class CacheManager:
    def cache_req(self, req):
        old, size = _handle(req), self._page_size
        num_pages = req.cached_len // size
        ids = req.input_ids[: num_pages * size].tolist()
        if self.tree.match(ids).cached_len > old.cached_len:
            return
        pages = self._pages(req)[:num_pages]
        self.tree.insert(ids, pages)
        new = req.cache_handle = self.tree.match(ids)
        self.tree.lock(new)
        self.tree.unlock(old)
