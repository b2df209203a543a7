# Takes the pages of a request to be neighbours, and frees as many from the first on.
# caught by: edge
class CacheManager:
    def free(self, req):
        first = int(self._page_table[req.table_idx, 0]) // self._page_size
        self.allocator.free(range(first, first + self._num_pages(req.max_device_len)))
