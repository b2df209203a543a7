# Takes the pages of a request to be neighbours, and frees as many from the first on.
# caught by: sample
class CacheManager:
    def free(self, req):
        pages = req.cache_handle.pages
        self._allocator.free(range(pages[0], pages[0] + len(pages)))
