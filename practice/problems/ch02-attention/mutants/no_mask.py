# Lets a token see those that come after it.
# caught by: sample
import torch


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q: [num_tokens, num_qo_heads, head_dim]; k, v: [num_tokens, num_kv_heads, head_dim]."""
    _, heads, dim = q.shape
    group = heads // k.shape[1]
    k = k.repeat_interleave(group, dim=1)
    v = v.repeat_interleave(group, dim=1)
    scores = torch.einsum("qhd,khd->hqk", q, k) * dim**-0.5
    weights = scores.softmax(-1)
    return torch.einsum("hqk,khd->qhd", weights, v)
