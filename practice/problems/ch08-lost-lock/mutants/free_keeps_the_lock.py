# Ends a request and leaves its lock: what it read can never be evicted.
# caught by: sample
class CacheManager:
    def free(self, req):
        self.cache_req(req)
        self._allocator.free(self._own_pages(req))
