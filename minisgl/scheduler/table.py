"""One row of the device's tables per running request."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from minisgl.core import Req


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
        self.reset()

    def reset(self) -> None:
        """Forget every request: all rows are free."""
        self._free_rows = list(reversed(range(len(self.page_table))))

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

    def check_invariants(self, running: Sequence[Req]) -> None:
        """Assert that each row is free or one request's; `running` are all that have one."""
        rows = sorted(self._free_rows + [req.table_idx for req in running])
        assert rows == list(range(len(self.page_table))), f"rows with 0 or 2 owners: {rows}"
