# Writes the row first and then frees what the row says: the tree's pages.
# caught by: sample
class CacheManager:
    def cache_req(self, req):
        old, size = _handle(req), self._page_size
        num_pages = req.cached_len // size
        ids = req.input_ids[: num_pages * size].tolist()
        pages = self._pages(req)[:num_pages]
        known = self.tree.insert(ids, pages)
        new = req.cache_handle = self.tree.match(ids)
        self.tree.lock(new)
        self.tree.unlock(old)
        first = old.cached_len // size
        self._write(req, first, new.pages()[first:known])
        self.allocator.free(self._pages(req)[first:known])
