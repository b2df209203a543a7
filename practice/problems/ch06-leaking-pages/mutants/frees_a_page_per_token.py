# Gives a page back for every token in it.
# caught by: sample
class CacheManager:
    def free(self, req):
        """Take all pages of `req` back."""
        first = self._page_table[req.table_idx, : req.max_device_len]
        self.allocator.free((first // self._page_size).tolist())
