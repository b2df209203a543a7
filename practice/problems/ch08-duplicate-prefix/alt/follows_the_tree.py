# Points the whole shared part of the row to the tree, then frees what the row no longer names.
class CacheManager:
    def cache_req(self, req):
        count = req.cached_len // self._page_size
        ids = req.input_ids.tolist()[: count * self._page_size]
        mine = self._pages(req)[:count]
        self.tree.insert(ids, mine)
        handle = self.tree.match(ids)
        self.tree.lock(handle)
        self.tree.unlock(_handle(req))
        req.cache_handle = handle
        kept = handle.pages()
        for index, page in enumerate(kept):
            begin = index * self._page_size
            for offset in range(self._page_size):
                self._page_table[req.table_idx, begin + offset] = page * self._page_size + offset
        self.allocator.free([page for page in mine if page not in kept])
