# Points the row to the tree's copy, but the handle still names its own pages.
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
        self._allocator.free(duplicates)
        req.cache_handle = CacheHandle(old.pages, prefix.cached_len, prefix)
