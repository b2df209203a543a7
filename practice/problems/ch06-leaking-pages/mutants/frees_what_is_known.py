# Gives back the pages of the tokens that are known, prompt and output.
# caught by: sample
class CacheManager:
    def free(self, req):
        num_pages = -(-len(req.input_ids) // self._page_size)
        self._allocator.free(req.cache_handle.pages[:num_pages])
