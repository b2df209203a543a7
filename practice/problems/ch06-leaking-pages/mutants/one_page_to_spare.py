# Adds a page in any case, also where the last one is full.
# caught by: edge
class CacheManager:
    def _num_pages(self, num_tokens):
        return num_tokens // self._page_size + 1
