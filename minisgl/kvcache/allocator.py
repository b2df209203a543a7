"""Which pages of the pool are free."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


class PageAllocator:
    """Hands out pages, as runs of neighbours where it can.

    Any free page would do, but a run can be read in place, while scattered pages must be
    gathered first. The free pages are kept as sorted runs, none of which touch.
    """

    def __init__(self, num_pages: int) -> None:
        self.num_free = num_pages
        self._runs = [(0, num_pages)]  # (first page, page after the last), ascending

    def allocate(self, count: int, after: int | None = None) -> list[int]:
        """Take `count` free pages; the caller has checked that there are enough.

        Those right after page `after`, if all of them are free: with what came before they make
        one run. Else the smallest run that holds them all is cut; if there is none, the longest
        ones are used up.
        """
        assert count <= self.num_free, f"{count} pages asked for, {self.num_free} are free"
        self.num_free -= count
        pages: list[int] = []
        while count > 0:
            index = self._run_from(after, count)
            if index is None:
                index = self._best_run(count)
            first, end = self._runs.pop(index)
            cut = min(first + count, end)
            if cut < end:
                self._runs.insert(index, (cut, end))
            pages.extend(range(first, cut))
            count -= cut - first
        return pages

    def _run_from(self, after: int | None, count: int) -> int | None:
        """Index of the run of at least `count` pages that begins right after page `after`."""
        if after is None:
            return None
        index = bisect_left(self._runs, (after + 1, 0))
        if index == len(self._runs):
            return None
        first, end = self._runs[index]
        return index if first == after + 1 and end - first >= count else None

    def _best_run(self, count: int) -> int:
        """Index of the shortest run of at least `count` pages, or of the longest run."""
        lengths = [end - first for first, end in self._runs]
        enough = [(length, index) for index, length in enumerate(lengths) if length >= count]
        return min(enough)[1] if enough else lengths.index(max(lengths))

    def free(self, pages: Iterable[int]) -> None:
        """Take pages back. Freeing one twice is an AssertionError that names it."""
        for page in pages:
            self._free_one(page)

    def _free_one(self, page: int) -> None:
        index = bisect_left(self._runs, (page + 1, 0))  # the first run that begins after it
        first, end = page, page + 1
        if index > 0:
            before_first, before_end = self._runs[index - 1]
            assert page >= before_end, f"page {page} is free already"
            if before_end == page:
                index -= 1
                del self._runs[index]
                first = before_first
        if index < len(self._runs) and self._runs[index][0] == end:
            end = self._runs.pop(index)[1]
        self._runs.insert(index, (first, end))
        self.num_free += 1

    def free_pages(self) -> list[int]:
        """Every free page, ascending."""
        return [page for first, end in self._runs for page in range(first, end)]
