"""Causal attention of one sequence, with grouped heads."""

import torch


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q: [num_tokens, num_qo_heads, head_dim]; k, v: [num_tokens, num_kv_heads, head_dim]."""
    raise NotImplementedError("ch02-attention: attention")
