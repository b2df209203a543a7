# Takes the maximum over keys that the token does not see.
# caught by: edge
import torch


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    tokens, heads, dim = q.shape
    group = heads // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("ihd,jhd->hij", q, k) / dim**0.5
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    weights = (scores - scores.amax(-1, keepdim=True)).exp().masked_fill(hidden, 0)
    weights = weights / weights.sum(-1, keepdim=True)
    return torch.einsum("hij,jhd->ihd", weights, v)
