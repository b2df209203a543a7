"""Causal self-attention with grouped queries."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from minisgl.core import get_global_ctx
from minisgl.layers.base import Layer
from minisgl.layers.linear import Linear, MergedLinear
from minisgl.layers.norm import RMSNorm
from minisgl.layers.rotary import Rotation


class Attention(Layer):
    """Each token looks at itself and all before it; several query heads share a key-value head.

    Sources: Vaswani et al., "Attention Is All You Need" (2017); Ainslie et al., "GQA" (2023);
    norm of queries and keys: Dehghani et al., "Scaling Vision Transformers to 22 Billion
    Parameters" (2023).
    """

    def __init__(
        self,
        hidden_size: int,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        *,
        qkv_bias: bool,
        o_bias: bool,
        layer_id: int,
        qk_norm_eps: float | None = None,
    ) -> None:
        """`layer_id` finds this layer's keys and values in the cache.

        `qk_norm_eps`: normalise queries and keys per head, with this epsilon.
        """
        q_size, kv_size = num_qo_heads * head_dim, num_kv_heads * head_dim
        members = {"q_proj": q_size, "k_proj": kv_size, "v_proj": kv_size}
        self.qkv_proj = MergedLinear(hidden_size, members, qkv_bias)
        self.o_proj = Linear(q_size, hidden_size, o_bias)
        if qk_norm_eps is not None:
            self.q_norm = RMSNorm(head_dim, qk_norm_eps)
            self.k_norm = RMSNorm(head_dim, qk_norm_eps)
        self._qk_norm = qk_norm_eps is not None
        self._head_dim = head_dim
        self._layer_id = layer_id

    def forward(self, x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
        """`[num_tokens, hidden_size]` of the one request in the batch to the same shape.

        Its new keys and values enter the cache, and those of its past come from there.
        """
        q, k, v = (
            projected.unflatten(-1, (-1, self._head_dim))  # [num_tokens, num_heads, head_dim]
            for projected in self.qkv_proj.forward_split(x)
        )
        if self._qk_norm:
            q, k = self.q_norm.forward(q), self.k_norm.forward(k)
        batch, cache = get_global_ctx().batch, get_global_ctx().kv_cache
        cache.store_kv(rotation.apply(k), v, batch.out_loc, self._layer_id)
        [req] = batch.reqs
        span = cache.span(req.table_idx, req.device_len)
        k, v = cache.k_cache(self._layer_id)[span], cache.v_cache(self._layer_id)[span]
        return self.o_proj.forward(attend(rotation.apply(q), k, v).flatten(1))


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention of the last tokens of one sequence to all of it.

    `q` is `[num_new, num_qo_heads, head_dim]`; `k` and `v` are
    `[num_all, num_kv_heads, head_dim]`; the result has the shape of `q`. New token `i` is
    position `num_all - num_new + i` and sees the keys up to there.
    """
    num_new, num_all = len(q), len(k)
    mask = None
    if 1 < num_new < num_all:
        # `is_causal` would align the mask with the first key, not with the last.
        mask = torch.ones(num_new, num_all, dtype=torch.bool, device=q.device)
        mask = mask.tril(num_all - num_new)
    # Four dimensions, with a batch of one: three would take torch's slow path.
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    out = F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=num_new == num_all, enable_gqa=True
    )
    return out[0].transpose(0, 1)
