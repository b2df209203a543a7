"""A KV cache that gives each running request room for the longest text there may be."""

from __future__ import annotations

import torch

from minisgl.kvcache.base import BaseKVCachePool


class ContiguousKVCache(BaseKVCachePool):
    """One row per running request, one location per position it may ever reach.

    Nothing needs to be looked up: position `p` of row `r` lies at `r * max_seq_len + p`. The
    price is memory that is reserved for texts that never grow that long.
    """

    def __init__(
        self,
        *,
        num_rows: int,
        max_seq_len: int,
        num_layers: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        # A token's heads lie side by side: a token is stored, moved or gathered as one run.
        shape = (2, num_layers, num_rows * max_seq_len, num_kv_heads, head_dim)
        self._buffer = torch.empty(shape, dtype=dtype, device=device)
        self._max_seq_len = max_seq_len

    def k_cache(self, layer_id: int) -> torch.Tensor:
        return self._buffer[0, layer_id]

    def v_cache(self, layer_id: int) -> torch.Tensor:
        return self._buffer[1, layer_id]

    def span(self, table_idx: int, length: int) -> slice:
        start = table_idx * self._max_seq_len
        return slice(start, start + length)

    @property
    def num_bytes(self) -> int:
        """The memory that is reserved, whatever is in use."""
        return self._buffer.nbytes
