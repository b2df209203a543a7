# Reads the row to its end, where the locations of an earlier request still stand.
# caught by: basic
class CacheManager:
    def free(self, req):
        first = self._page_table[req.table_idx, :: self._page_size]
        self._allocator.free((first[first >= 0] // self._page_size).tolist())
