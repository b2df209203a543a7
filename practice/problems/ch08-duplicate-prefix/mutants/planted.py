# Frees the duplicate pages, but the request goes on reading them.
# caught by: sample
class CacheManager:
    def cache_req(self, req: Req) -> None:
        """Give what `req` has computed to the tree, in whole pages.

        Another request may have brought the same tokens meanwhile. Then the tree keeps that copy,
        and the pages of `req` that hold the same are freed.
        """
        old, size = _handle(req), self._page_size
        num_pages = req.cached_len // size
        ids = req.input_ids[: num_pages * size].tolist()
        pages = self._pages(req)[:num_pages]
        known = self.tree.insert(ids, pages)
        new = req.cache_handle = self.tree.match(ids)
        self.tree.lock(new)
        self.tree.unlock(old)
        first = old.cached_len // size
        self.allocator.free(pages[first:known])
