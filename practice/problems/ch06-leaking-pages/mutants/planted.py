# Gives back the pages up to device_len, and keeps those reserved for tokens that never came.
# caught by: sample
class CacheManager:
    def free(self, req: Req) -> None:
        """Take all pages of `req` back."""
        first = self._page_table[req.table_idx, : req.device_len : self._page_size]
        self.allocator.free((first // self._page_size).tolist())
