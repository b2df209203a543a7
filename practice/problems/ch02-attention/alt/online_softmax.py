# One key after the other with a running maximum and sum, as flash attention does.
import math

import torch


def attention(q, k, v):
    n, heads, dim = q.shape
    kv_heads = k.shape[1]
    q = q.reshape(n, kv_heads, heads // kv_heads, dim) / math.sqrt(dim)
    best = torch.full(q.shape[:3], -math.inf)
    total = torch.zeros(q.shape[:3])
    out = torch.zeros_like(q)
    for j in range(n):
        score = (q[j:] * k[j][None, :, None]).sum(-1)
        new_best = torch.maximum(best[j:], score)
        shrink, weight = (best[j:] - new_best).exp(), (score - new_best).exp()
        total[j:] = total[j:] * shrink + weight
        out[j:] = out[j:] * shrink[..., None] + weight[..., None] * v[j][None, :, None]
        best[j:] = new_best
    return (out / total[..., None]).reshape(n, heads, dim)
