"""Pages for requests: who gets which, and the page table that says so."""

from __future__ import annotations

import torch

from minisgl.core import Req
from minisgl.kvcache.allocator import PageAllocator


class CacheManager:
    """Gives a request the pages for all tokens that it may ever have, and takes them back."""

    def __init__(self, num_pages: int, page_size: int, page_table: torch.Tensor) -> None:
        """`page_table` is the engine's, int32 `[num_rows, max_seq_len]`."""
        self.allocator = PageAllocator(num_pages)
        self._page_size = page_size
        self._page_table = page_table

    def can_allocate(self, num_tokens: int) -> bool:
        """Whether a request of so many tokens, prompt and output, fits now."""
        return self._num_pages(num_tokens) <= self.allocator.num_free

    def allocate(self, req: Req) -> None:
        """Give `req` its pages and write their locations into its row of the page table."""
        pages = self.allocator.allocate(self._num_pages(req.max_device_len))
        first = torch.tensor(pages, dtype=torch.int32)[:, None] * self._page_size
        locations = (first + torch.arange(self._page_size, dtype=torch.int32)).flatten()
        row = self._page_table[req.table_idx]
        row[: req.max_device_len] = locations[: req.max_device_len].to(row.device)

    def free(self, req: Req) -> None:
        """Take all pages of `req` back."""
        first = self._page_table[req.table_idx, : req.max_device_len : self._page_size]
        self.allocator.free((first // self._page_size).tolist())

    def _num_pages(self, num_tokens: int) -> int:
        return -(-num_tokens // self._page_size)
