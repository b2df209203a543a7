# Takes one maximum off all scores, which leaves rows far below it nothing but zeros.
# caught by: edge
import torch


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    num_new, num_all = len(q), len(k)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("ihd,jhd->hij", q, k) / q.shape[2] ** 0.5
    hidden = torch.ones(num_new, num_all, dtype=torch.bool, device=q.device)
    hidden = hidden.triu(num_all - num_new + 1)
    weights = (scores - scores.masked_fill(hidden, float("-inf")).max()).exp()
    weights = weights.masked_fill(hidden, 0)
    weights = weights / weights.sum(-1, keepdim=True)
    return torch.einsum("hij,jhd->ihd", weights, v)
