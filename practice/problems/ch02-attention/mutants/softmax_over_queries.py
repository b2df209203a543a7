# Runs the softmax over the queries, not over the keys.
# caught by: sample
import torch


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q: [num_tokens, num_qo_heads, head_dim]; k, v: [num_tokens, num_kv_heads, head_dim]."""
    n, heads, dim = q.shape
    group = heads // k.shape[1]
    k = k.repeat_interleave(group, dim=1)
    v = v.repeat_interleave(group, dim=1)
    scores = torch.einsum("qhd,khd->hqk", q, k) * dim**-0.5
    hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-2).nan_to_num()
    return torch.einsum("hqk,khd->qhd", weights, v)
