# Remembers the pages of each request, so that nothing has to be read back from the page table.

from minisgl.kvcache.allocator import PageAllocator


class CacheManager:
    def __init__(self, num_pages, page_size, page_table):
        self.allocator = PageAllocator(num_pages)
        self._page_size = page_size
        self._page_table = page_table
        self._pages_of = {}

    def allocate(self, req):
        pages = self.allocator.allocate(self._num_pages(req.max_device_len))
        self._pages_of[req] = pages
        size = self._page_size
        locations = [page * size + offset for page in pages for offset in range(size)]
        for token in range(req.max_device_len):
            self._page_table[req.table_idx, token] = locations[token]

    def free(self, req):
        self.allocator.free(self._pages_of.pop(req))
