# Takes the positions in float16, which skips whole numbers from 2049 on.
# caught by: edge
import torch


def rotate(q: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    head_dim = q.shape[-1]
    exponents = torch.arange(0, head_dim, 2) / head_dim
    angles = positions.half().float()[:, None, None] / theta**exponents
    cos, sin = angles.cos(), angles.sin()
    first, second = q.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
