# Compares tokens with pages.
# caught by: sample
class CacheManager:
    def can_allocate(self, num_tokens):
        return num_tokens <= self.allocator.num_free
