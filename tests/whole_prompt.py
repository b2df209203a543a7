"""A context for layers that are tested alone, on the tree of any chapter.

Layers find what they need in the current Context: at first the batch, from chapter 4 on the rows
that are sampled from, then a KV cache, a page table, an attention backend. For a prompt that is
computed whole, the last three only have to hand a layer its own keys and values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F

from minisgl.core import Batch, Context, Req, SamplingParams, reset_global_ctx, set_global_ctx


class NoPast:
    """KV cache and attention backend for a single prompt with no past."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def store_kv(
        self, k: torch.Tensor, v: torch.Tensor, out_loc: torch.Tensor, layer_id: int
    ) -> None:
        self._kept[layer_id] = k, v

    def k_cache(self, layer_id: int) -> torch.Tensor:
        return self._kept[layer_id][0]

    def v_cache(self, layer_id: int) -> torch.Tensor:
        return self._kept[layer_id][1]

    def span(self, table_idx: int, length: int) -> slice:
        return slice(length)

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer_id: int, batch: Batch
    ) -> torch.Tensor:
        q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return out[0].transpose(0, 1)


def make_req(device_len: int, cached_len: int = 0) -> Req:
    no_handle: Any = None  # there is no prefix cache that could lock anything
    ids = torch.zeros(device_len, dtype=torch.int32)
    return Req(ids, 0, cached_len, 4, 0, SamplingParams(), no_handle)


def prompt_batch(ids: torch.Tensor, positions: torch.Tensor | None = None) -> Batch:
    """A batch of one request, whose prompt `ids` `[num_tokens]` is new from end to end."""
    batch = Batch([make_req(len(ids))], "prefill")
    batch.input_ids = ids
    batch.positions = torch.arange(len(ids)) if positions is None else positions
    return batch


@contextmanager
def current(batch: Batch) -> Iterator[None]:
    """Make `batch` the one that layers read; attention takes only one from `prompt_batch`."""
    ends = torch.tensor([req.extend_len for req in batch.reqs]).cumsum(0)
    batch.out_loc = torch.arange(int(ends[-1]))
    batch.logits_rows = ends - 1
    ctx = Context(page_size=1)
    no_past: Any = NoPast()
    ctx.kv_cache = ctx.attn_backend = no_past
    ctx.page_table = batch.out_loc.int()[None]
    set_global_ctx(ctx)
    try:
        with ctx.forward_batch(batch):
            yield
    finally:
        reset_global_ctx()
