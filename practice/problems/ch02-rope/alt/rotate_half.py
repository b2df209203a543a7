# As transformers writes it: the halves swapped, one of them negated, and the tables doubled.
import torch


def rotate(q, positions, theta):
    dim = q.shape[-1]
    frequency = 1.0 / theta ** (torch.arange(0, dim, 2).float() / dim)
    angles = positions.float().unsqueeze(-1) * frequency
    table = torch.cat((angles, angles), dim=-1).unsqueeze(1)
    swapped = torch.cat((-q[..., dim // 2 :], q[..., : dim // 2]), dim=-1)
    return q * table.cos() + swapped * table.sin()
