# Turns the caller's own q, which he may still need.
# caught by: sample
import torch


def rotate(q: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    half = q.shape[-1] // 2
    angles = positions.float()[:, None, None] / theta ** (torch.arange(half) / half)
    first, second = q[..., :half].clone(), q[..., half:].clone()
    q[..., :half] = first * angles.cos() - second * angles.sin()
    q[..., half:] = second * angles.cos() + first * angles.sin()
    return q
