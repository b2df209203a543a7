# Moves to the tree's copy only the first of the duplicate pages.
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
        self._write(req, first, new.pages()[first : first + 1])
        self.allocator.free(pages[first:known])
