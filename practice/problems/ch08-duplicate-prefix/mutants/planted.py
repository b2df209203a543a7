# Frees the duplicate pages, but the request goes on reading and writing them.
# caught by: sample
class CacheManager:
    def cache_req(self, req: Req) -> None:
        """Give what `req` has computed to the tree, in whole pages.

        Another request may have brought the same tokens meanwhile. Then the tree keeps that copy,
        and the pages of `req` that hold the same are freed.
        """
        old = _handle(req)
        num_pages = req.cached_len // self._page_size
        ids = req.input_ids[: num_pages * self._page_size].tolist()
        prefix = self._tree.insert(ids, old.pages[:num_pages])
        self._tree.lock(prefix)
        self._tree.unlock(old.prefix)
        shared = prefix.pages()
        pages = shared + old.pages[num_pages:]
        self._allocator.free(own for own, kept in zip(old.pages, pages, strict=True) if own != kept)
        req.cache_handle = CacheHandle(pages, prefix.cached_len, prefix)
