# Gives a page back for every token in it.
# caught by: sample
class CacheManager:
    def free(self, req):
        locations = self._page_table[req.table_idx, : req.max_device_len - 1]
        self._allocator.free((locations // self._page_size).tolist())
