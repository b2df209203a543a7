# Gives back the pages up to device_len, and keeps those reserved for tokens that never came.
# caught by: sample
class CacheManager:
    def free(self, req: Req) -> None:
        """Take all pages of `req` back."""
        num_pages = -(-req.device_len // self._page_size)
        self._allocator.free(req.cache_handle.pages[:num_pages])
