# Counts a head as a step of its own: head h of position p turns by p + h.
# caught by: basic
import torch


def rotate(q: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    head_dim = q.shape[-1]
    exponents = torch.arange(0, head_dim, 2) / head_dim
    places = positions[:, None, None] + torch.arange(q.shape[1])[None, :, None]
    angles = places.float() / theta**exponents
    cos, sin = angles.cos(), angles.sin()
    first, second = q.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
