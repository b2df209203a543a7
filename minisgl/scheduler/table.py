"""One row of the device's tables per running request."""

from __future__ import annotations

import torch


class TableManager:
    """Hands out rows of the page table and of its twin, the token pool.

    Both have a column per position. The page table says where that token's KV lies, the token
    pool which token it is, so that a sampled token becomes the next input without leaving the
    device.
    """

    def __init__(self, page_table: torch.Tensor) -> None:
        """`page_table` is the engine's, int32 `[num_rows, max_seq_len]`."""
        self.page_table = page_table
        self.token_pool = torch.zeros_like(page_table)
        self._free_rows = list(reversed(range(len(page_table))))

    @property
    def num_free_rows(self) -> int:
        """How many more requests can run."""
        return len(self._free_rows)

    def allocate(self) -> int:
        """A row for a request; the caller has made sure that one is free."""
        return self._free_rows.pop()

    def free(self, row: int) -> None:
        """Take a row back."""
        assert row not in self._free_rows, f"row {row} is free already"
        self._free_rows.append(row)
