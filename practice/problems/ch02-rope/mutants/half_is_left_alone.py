# Rotates the first half of the head only, as models with partial rotary do.
# caught by: sample
import torch


def rotate(q: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    head_dim = q.shape[-1] // 2
    q, rest = q.split([head_dim, q.shape[-1] - head_dim], dim=-1)
    exponents = torch.arange(0, head_dim, 2) / head_dim
    angles = positions.float()[:, None, None] / theta**exponents
    cos, sin = angles.cos(), angles.sin()
    first, second = q.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], dim=-1)
