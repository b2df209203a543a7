# Keeps the handle of its admission, so that the tree's pages count as its own as well.
# caught by: sample
class CacheManager:
    def cache_req(self, req):
        old, size = _handle(req), self._page_size
        num_pages = req.cached_len // size
        ids = req.input_ids[: num_pages * size].tolist()
        pages = self._pages(req)[:num_pages]
        known = self.tree.insert(ids, pages)
        new = self.tree.match(ids)
        first = old.cached_len // size
        self._write(req, first, new.pages()[first:known])
        self.allocator.free(pages[first:known])
