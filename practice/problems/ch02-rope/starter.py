"""Rotary position embedding: positions become rotations."""

import torch


def rotate(q: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    """q: [num_tokens, num_heads, head_dim]; positions: [num_tokens]."""
    raise NotImplementedError("ch02-rope: rotate")
