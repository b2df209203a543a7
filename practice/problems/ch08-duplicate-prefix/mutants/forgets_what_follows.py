# Takes the tree's pages for all of the request's, and loses those of the tokens to come.
# caught by: sample
class CacheManager:
    def cache_req(self, req):
        old = _handle(req)
        num_pages = req.cached_len // self._page_size
        ids = req.input_ids[: num_pages * self._page_size].tolist()
        prefix = self._tree.insert(ids, old.pages[:num_pages])
        self._tree.lock(prefix)
        self._tree.unlock(old.prefix)
        pages = prefix.pages()
        duplicates = [page for page in old.pages[:num_pages] if page not in pages]
        self._write(req.table_idx, pages)
        self._allocator.free(duplicates)
        req.cache_handle = CacheHandle(pages, prefix.cached_len, prefix)
