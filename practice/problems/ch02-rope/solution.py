"""Rotary position embedding: positions become rotations."""

import torch


def rotate(q: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    """q: [num_tokens, num_heads, head_dim]; positions: [num_tokens]."""
    head_dim = q.shape[-1]
    exponents = torch.arange(0, head_dim, 2) / head_dim
    angles = positions.float()[:, None, None] / theta**exponents  # [num_tokens, 1, head_dim / 2]
    cos, sin = angles.cos(), angles.sin()
    first, second = q.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
