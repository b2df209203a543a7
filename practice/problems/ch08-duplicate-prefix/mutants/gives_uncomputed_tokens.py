# Gives the tree every known token, although the KV of the last one is not there yet.
# caught by: edge
class CacheManager:
    def cache_req(self, req):
        old = _handle(req)
        num_pages = min(len(req.input_ids) // self._page_size, len(old.pages))
        ids = req.input_ids[: num_pages * self._page_size].tolist()
        prefix = self._tree.insert(ids, old.pages[:num_pages])
        self._tree.lock(prefix)
        self._tree.unlock(old.prefix)
        pages = prefix.pages() + old.pages[num_pages:]
        duplicates = [own for own, kept in zip(old.pages, pages, strict=True) if own != kept]
        self._write(req.table_idx, pages)
        self._allocator.free(duplicates)
        req.cache_handle = CacheHandle(pages, prefix.cached_len, prefix)
