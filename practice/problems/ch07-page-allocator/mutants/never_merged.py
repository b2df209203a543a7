# Puts a page back as a run of its own, so the pool falls to pieces.
# caught by: basic
from bisect import bisect_left


class PageAllocator:
    def _free_one(self, page):
        index = bisect_left(self._runs, (page + 1, 0))
        first, end = page, page + 1
        if index > 0:
            _, before_end = self._runs[index - 1]
            assert page >= before_end, f"page {page} is free already"
        self._runs.insert(index, (first, end))
        self.num_free += 1
