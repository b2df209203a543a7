"""The attention backend that runs wherever torch does."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
import torch.nn.functional as F

from minisgl.attention.base import BaseAttnBackend
from minisgl.attention.metadata import BaseAttnMetadata
from minisgl.core import Batch, Req
from minisgl.kvcache import BaseKVCachePool


@dataclass(frozen=True)
class Part:
    """One request's share of a batch."""

    rows: slice  # of the batch's tokens
    locations: slice | torch.Tensor  # of its KV: a slice where they are one run, else int32 indices
    mask: torch.Tensor | None  # bool [num_new, num_all]; None where `is_causal` or none will do

    def read(self, cache: torch.Tensor) -> torch.Tensor:
        """Keys or values of the request, `[num_all, num_kv_heads, head_dim]`: a view if it can."""
        if isinstance(self.locations, slice):
            return cache[self.locations]
        return cache.index_select(0, self.locations)


@dataclass(frozen=True)
class TorchAttnMetadata(BaseAttnMetadata):
    """The boundaries, and what each request reads."""

    parts: list[Part]


class TorchAttnBackend(BaseAttnBackend):
    """One call of torch's attention per request.

    A request whose pages follow each other is read in place; only where they are scattered are
    its keys and values copied together first.
    """

    def __init__(self, kv_cache: BaseKVCachePool, page_table: torch.Tensor, page_size: int) -> None:
        """`page_table` is the engine's, int32 `[num_rows, max_seq_len]`."""
        self._kv_cache = kv_cache
        self._page_table = page_table
        self._page_size = page_size

    def prepare_metadata(self, batch: Batch) -> None:
        bounds_q = list(accumulate((req.extend_len for req in batch.reqs), initial=0))
        bounds_k = list(accumulate((req.device_len for req in batch.reqs), initial=0))
        device = self._page_table.device
        batch.attn_metadata = TorchAttnMetadata(
            cu_seqlens_q=torch.tensor(bounds_q, dtype=torch.int32, device=device),
            cu_seqlens_k=torch.tensor(bounds_k, dtype=torch.int32, device=device),
            parts=[
                Part(slice(start, end), self._locations(req), self._mask(req))
                for req, (start, end) in zip(batch.reqs, pairwise(bounds_q), strict=True)
            ],
        )

    def _locations(self, req: Req) -> slice | torch.Tensor:
        if req.cache_handle.is_run:  # known on the host: nothing is read back from the device
            first = req.cache_handle.pages[0] * self._page_size
            return slice(first, first + req.device_len)
        return self._page_table[req.table_idx, : req.device_len]

    def _mask(self, req: Req) -> torch.Tensor | None:
        if req.extend_len in (1, req.device_len):
            return None
        # `is_causal` would align the mask with the first key, not with the last.
        mask = torch.ones(req.extend_len, req.device_len, dtype=torch.bool)
        return mask.tril(req.cached_len).to(self._page_table.device)

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer_id: int, batch: Batch
    ) -> torch.Tensor:
        metadata = batch.attn_metadata
        assert isinstance(metadata, TorchAttnMetadata)
        self._kv_cache.store_kv(k, v, batch.out_loc, layer_id)
        k_cache, v_cache = self._kv_cache.k_cache(layer_id), self._kv_cache.v_cache(layer_id)
        out = torch.empty_like(q)
        for part in metadata.parts:
            out[part.rows] = attend(q[part.rows], part.read(k_cache), part.read(v_cache), part.mask)
        return out


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None
) -> torch.Tensor:
    """Causal attention of the last tokens of one sequence to all of it.

    `q` is `[num_new, num_qo_heads, head_dim]`; `k` and `v` are
    `[num_all, num_kv_heads, head_dim]`; the result has the shape of `q`. `mask` is needed where
    `num_new` is neither 1 nor `num_all`.
    """
    # Four dimensions, with a batch of one: three would take torch's slow path.
    is_causal = len(q) == len(k)
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    out = F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=is_causal, enable_gqa=True
    )
    return out[0].transpose(0, 1)
