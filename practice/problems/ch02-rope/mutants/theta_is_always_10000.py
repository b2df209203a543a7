# Writes 10000 for theta, which is right for the first Llama only.
# caught by: sample
import torch


def rotate(q: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    head_dim = q.shape[-1]
    exponents = torch.arange(0, head_dim, 2) / head_dim
    angles = positions.float()[:, None, None] / 10000.0**exponents
    cos, sin = angles.cos(), angles.sin()
    first, second = q.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
