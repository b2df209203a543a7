# Rounds down on the way back: a last page that is not full is lost.
# caught by: sample
class CacheManager:
    def free(self, req):
        """Take all pages of `req` back."""
        first = self._page_table[
            req.table_idx,
            : req.max_device_len // self._page_size * self._page_size : self._page_size,
        ]
        self.allocator.free((first // self._page_size).tolist())
