# Gives back the pages whose KV was computed.
# caught by: sample
class CacheManager:
    def free(self, req):
        """Take all pages of `req` back."""
        first = self._page_table[req.table_idx, : req.cached_len : self._page_size]
        self.allocator.free((first // self._page_size).tolist())
