# Turns every pair by the position itself, which makes position 44 look like position 0.
# caught by: sample
import torch


def rotate(q: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    head_dim = q.shape[-1]
    angles = positions.float()[:, None, None].expand(-1, 1, head_dim // 2)
    cos, sin = angles.cos(), angles.sin()
    first, second = q.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
