"""Pages for requests: who has which, and the page table that says so."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from minisgl.core import Req
from minisgl.kvcache.allocator import PageAllocator
from minisgl.kvcache.base import BaseCacheHandle


class CacheManager:
    """Gives a request pages for all tokens that it may ever have, and takes them back.

    A handle's list says which pages; the page table on the device mirrors it, and is only
    written here.
    """

    def __init__(self, num_pages: int, page_size: int, page_table: torch.Tensor) -> None:
        """`page_table` is the engine's, int32 `[num_rows, max_seq_len]`."""
        self._num_pages = num_pages
        self._page_size = page_size
        self._page_table = page_table
        self.reset()

    def reset(self) -> None:
        """Forget every request: all pages are free."""
        self._allocator = PageAllocator(self._num_pages)

    def reserve(self, table_idx: int, num_tokens: int) -> BaseCacheHandle | None:
        """Places for `num_tokens` tokens of the request in this row, or None: they do not fit."""
        count = -(-num_tokens // self._page_size)
        if count > self._allocator.num_free:
            return None
        pages = self._allocator.allocate(count)
        self._write(table_idx, pages)
        return BaseCacheHandle(pages)

    def free(self, req: Req) -> None:
        """Take all pages of `req` back."""
        self._allocator.free(req.cache_handle.pages)

    def check_invariants(self, running: Sequence[Req]) -> None:
        """Assert that each page is free or one request's; `running` are all that have pages."""
        owned = [self._allocator.free_pages(), *(req.cache_handle.pages for req in running)]
        pages = sorted(page for owner in owned for page in owner)
        assert pages == list(range(self._num_pages)), f"pages with 0 or 2 owners: {owned}"

    def _write(self, table_idx: int, pages: list[int]) -> None:
        """Mirror a request's pages in its row of the page table, as locations of tokens."""
        starts = torch.tensor(pages, dtype=torch.int32)[:, None] * self._page_size
        locations = (starts + torch.arange(self._page_size, dtype=torch.int32)).flatten()
        row = self._page_table[table_idx]
        row[: len(locations)] = locations[: len(row)].to(row.device)
