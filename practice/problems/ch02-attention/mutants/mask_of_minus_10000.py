# Takes -10,000 for minus infinity.
# caught by: edge
import torch


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    tokens, heads, dim = q.shape
    group = heads // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("ihd,jhd->hij", q, k) / dim**0.5
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(hidden, -1e4).softmax(-1)
    return torch.einsum("hij,jhd->ihd", weights, v)
