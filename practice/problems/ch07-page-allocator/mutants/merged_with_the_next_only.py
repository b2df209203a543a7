# Joins a page to the run behind it and forgets the one before.
# caught by: basic
from bisect import bisect_left


class PageAllocator:
    def _free_one(self, page):
        index = bisect_left(self._runs, (page + 1, 0))
        first, end = page, page + 1
        if index > 0:
            _, before_end = self._runs[index - 1]
            assert page >= before_end, f"page {page} is free already"
        if index < len(self._runs) and self._runs[index][0] == end:
            end = self._runs.pop(index)[1]
        self._runs.insert(index, (first, end))
        self.num_free += 1
