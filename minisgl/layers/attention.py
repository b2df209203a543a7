"""Causal self-attention with grouped queries."""

from __future__ import annotations

import torch

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
        """`[num_tokens, hidden_size]` of the current batch to the same shape."""
        q, k, v = (
            projected.unflatten(-1, (-1, self._head_dim))  # [num_tokens, num_heads, head_dim]
            for projected in self.qkv_proj.forward_split(x)
        )
        if self._qk_norm:
            q, k = self.q_norm.forward(q), self.k_norm.forward(k)
        ctx = get_global_ctx()
        q, k = rotation.apply(q), rotation.apply(k)
        out = ctx.attn_backend.forward(q, k, v, self._layer_id, ctx.batch)
        return self.o_proj.forward(out.flatten(1))
