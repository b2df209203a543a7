# Leaves nothing behind in the row of the page table.
class CacheManager:
    def free(self, req: Req) -> None:
        """Take all pages of `req` back."""
        self._page_table[req.table_idx] = -1
        self._allocator.free(reversed(req.cache_handle.pages))
