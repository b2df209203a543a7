# A loop over tokens that cuts the keys, so that no mask is needed.
import torch


def attention(q, k, v):
    heads, dim = q.shape[1:]
    owner = torch.arange(heads) // (heads // k.size(1))
    k, v = k[:, owner], v[:, owner]
    rows = []
    for i in range(len(q)):
        scores = torch.einsum("hd,khd->hk", q[i] / dim**0.5, k[: i + 1])
        rows.append(torch.einsum("hk,khd->hd", torch.softmax(scores, 1), v[: i + 1]))
    return torch.stack(rows)
