"""The memory for keys and values, cut into pages that any request may use."""

from __future__ import annotations

import torch

from minisgl.kvcache.base import BaseKVCachePool


class PagedKVPool(BaseKVCachePool):
    """`num_pages` pages of `page_size` tokens each; page `p` is the locations from `p * page_size`.

    Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with
    PagedAttention" (2023).
    """

    def __init__(
        self,
        *,
        num_pages: int,
        page_size: int,
        num_layers: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        # A token's heads lie side by side: a token is stored, moved or gathered as one run.
        shape = (2, num_layers, num_pages * page_size, num_kv_heads, head_dim)
        self._buffer = torch.empty(shape, dtype=dtype, device=device)

    def k_cache(self, layer_id: int) -> torch.Tensor:
        return self._buffer[0, layer_id]

    def v_cache(self, layer_id: int) -> torch.Tensor:
        return self._buffer[1, layer_id]

    @property
    def num_bytes(self) -> int:
        """The memory of all pages."""
        return self._buffer.nbytes
