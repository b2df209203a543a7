# Takes one maximum off all scores, which leaves rows far below it nothing but zeros.
# caught by: edge
import torch


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    tokens, heads, dim = q.shape
    group = heads // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("ihd,jhd->hij", q, k) / dim**0.5
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    scores = scores.masked_fill(hidden, float("-inf"))
    weights = (scores - scores.max()).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    return torch.einsum("hij,jhd->ihd", weights, v)
