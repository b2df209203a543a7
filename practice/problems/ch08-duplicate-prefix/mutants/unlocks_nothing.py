# Locks the new prefix and never unlocks the old one: the shared beginning can never be evicted.
# caught by: edge
class CacheManager:
    def cache_req(self, req):
        old, size = _handle(req), self._page_size
        num_pages = req.cached_len // size
        ids = req.input_ids[: num_pages * size].tolist()
        pages = self._pages(req)[:num_pages]
        known = self.tree.insert(ids, pages)
        new = req.cache_handle = self.tree.match(ids)
        self.tree.lock(new)
        first = old.cached_len // size
        self._write(req, first, new.pages()[first:known])
        self.allocator.free(pages[first:known])
