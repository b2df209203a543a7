"""Which pages of the pool are free."""

from __future__ import annotations

from collections.abc import Iterable


class PageAllocator:
    """Hands out pages. Any free page is as good as another: a page table finds it wherever it is.

    The page that was freed last is used first.
    """

    def __init__(self, num_pages: int) -> None:
        self._free = dict.fromkeys(reversed(range(num_pages)))  # a stack that knows what it holds

    @property
    def num_free(self) -> int:
        """How many pages are free."""
        return len(self._free)

    def allocate(self, count: int) -> list[int]:
        """Take `count` free pages; the caller has checked that there are enough."""
        assert count <= self.num_free, f"{count} pages asked for, {self.num_free} are free"
        return [self._free.popitem()[0] for _ in range(count)]

    def free(self, pages: Iterable[int]) -> None:
        """Take pages back. Freeing one twice is an AssertionError that names it."""
        for page in pages:
            assert page not in self._free, f"page {page} is free already"
            self._free[page] = None

    def free_pages(self) -> list[int]:
        """Every free page, ascending."""
        return sorted(self._free)
