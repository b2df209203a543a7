# A rotation matrix per token, built from its four corners.
import torch


def rotate(q, positions, theta):
    dim = q.shape[-1]
    i = torch.arange(dim // 2)
    angles = positions[:, None].double() * theta ** (-2.0 * i.double() / dim)
    matrix = torch.zeros(len(q), dim, dim, dtype=torch.float64)
    matrix[:, i, i] = matrix[:, i + dim // 2, i + dim // 2] = angles.cos()
    matrix[:, i + dim // 2, i] = angles.sin()
    matrix[:, i, i + dim // 2] = -angles.sin()
    return torch.einsum("nij,nhj->nhi", matrix, q.double()).float()
