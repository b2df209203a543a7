# Pairs as complex numbers: one multiplication turns each of them.
import torch


def rotate(q, positions, theta):
    half = q.size(-1) // 2
    points = torch.complex(q[..., :half].contiguous(), q[..., half:].contiguous())
    frequencies = torch.logspace(0, -1 + 1 / half, half, base=theta, dtype=torch.float64)
    angles = torch.outer(positions.double(), frequencies)
    turned = points * torch.polar(torch.ones_like(angles), angles)[:, None]
    return torch.cat([turned.real, turned.imag], dim=-1).float()
