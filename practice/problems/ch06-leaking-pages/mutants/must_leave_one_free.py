# Refuses a request that takes the last page.
# caught by: edge
class CacheManager:
    def can_allocate(self, num_tokens):
        return self._num_pages(num_tokens) < self.allocator.num_free
