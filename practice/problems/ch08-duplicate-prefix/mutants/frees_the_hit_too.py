# Frees from the first page on, so the pages of its old hit are freed under the tree.
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
        self.tree.unlock(old)
        self._write(req, 0, new.pages()[:known])
        self.allocator.free(pages[:known])
