# Reads the pairs from the two halves but writes them back as neighbours.
# caught by: basic
import torch


def rotate(q: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    head_dim = q.shape[-1]
    exponents = torch.arange(0, head_dim, 2) / head_dim
    angles = positions.float()[:, None, None] / theta**exponents
    cos, sin = angles.cos(), angles.sin()
    first, second = q.chunk(2, dim=-1)
    turned = [first * cos - second * sin, second * cos + first * sin]
    return torch.stack(turned, dim=-1).flatten(-2)
