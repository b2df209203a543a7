# Keeps the allocator as it is: the pages of the batch that failed never come back.
# caught by: edge
class CacheManager:
    def reset(self):
        if not hasattr(self, "_allocator"):
            self._allocator = PageAllocator(self._num_pages)
