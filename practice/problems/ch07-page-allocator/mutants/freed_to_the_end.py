# Puts freed pages at the end of the list, as a free list of single pages would.
# caught by: basic
class PageAllocator:
    def _free_one(self, page):
        for first, end in self._runs:
            assert not first <= page < end, f"page {page} is free already"
        self._runs.append((page, page + 1))
        self.num_free += 1
