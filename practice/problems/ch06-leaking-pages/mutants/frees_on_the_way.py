# Gives every page back but the last, which the request writes to in the end.
# caught by: sample
class CacheManager:
    def free(self, req):
        self._allocator.free(req.cache_handle.pages[:-1])
