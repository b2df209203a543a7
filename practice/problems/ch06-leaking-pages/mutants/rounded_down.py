# Rounds down, and the last tokens have no page.
# caught by: sample
class CacheManager:
    def _num_pages(self, num_tokens):
        return num_tokens // self._page_size
