# Joins a page to the run before it and forgets the one behind.
# caught by: basic
from bisect import bisect_left


class PageAllocator:
    def _free_one(self, page):
        index = bisect_left(self._runs, (page + 1, 0))
        first, end = page, page + 1
        if index > 0:
            before_first, before_end = self._runs[index - 1]
            assert page >= before_end, f"page {page} is free already"
            if before_end == page:
                index -= 1
                del self._runs[index]
                first = before_first
        self._runs.insert(index, (first, end))
        self.num_free += 1
