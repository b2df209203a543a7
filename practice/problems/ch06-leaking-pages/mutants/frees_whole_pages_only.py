# Rounds down on the way back: a last page that is not full is lost.
# caught by: sample
class CacheManager:
    def free(self, req):
        num_pages = (req.max_device_len - 1) // self._page_size
        self._allocator.free(req.cache_handle.pages[:num_pages])
