# Gives locations back for pages.
# caught by: sample
class CacheManager:
    def free(self, req):
        last = req.max_device_len - 1
        first = self._page_table[req.table_idx, : last : self._page_size]
        self._allocator.free(first.tolist())
