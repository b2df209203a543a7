# Gives back the pages whose KV was computed.
# caught by: sample
class CacheManager:
    def free(self, req):
        num_pages = -(-req.cached_len // self._page_size)
        self._allocator.free(req.cache_handle.pages[:num_pages])
