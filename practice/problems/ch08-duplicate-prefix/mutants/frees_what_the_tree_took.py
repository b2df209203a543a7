# Frees all that it gave to the tree, not only what the tree knew before.
# caught by: sample
class CacheManager:
    def cache_req(self, req):
        old = _handle(req)
        num_pages = req.cached_len // self._page_size
        ids = req.input_ids[: num_pages * self._page_size].tolist()
        prefix = self._tree.insert(ids, old.pages[:num_pages])
        self._tree.lock(prefix)
        self._tree.unlock(old.prefix)
        pages = prefix.pages() + old.pages[num_pages:]
        duplicates = [own for own, kept in zip(old.pages, pages, strict=True) if own != kept]
        self._write(req.table_idx, pages)
        first = old.cached_len // self._page_size
        self._allocator.free(old.pages[first:num_pages])
        req.cache_handle = CacheHandle(pages, prefix.cached_len, prefix)
