# Keeps a list of its own of who has which pages, by rows of the page table.
class CacheManager:
    def reset(self):
        self._allocator = PageAllocator(self._num_pages)
        self._pages_of = {}

    def reserve(self, table_idx, num_tokens):
        size = self._page_size
        if num_tokens > self._allocator.num_free * size:
            return None
        pages = self._allocator.allocate((num_tokens + size - 1) // size)
        self._pages_of[table_idx] = pages
        for token in range(num_tokens):
            self._page_table[table_idx, token] = pages[token // size] * size + token % size
        return BaseCacheHandle(list(pages))

    def free(self, req):
        self._allocator.free(self._pages_of.pop(req.table_idx))
