# Takes -10,000 for minus infinity.
# caught by: edge
import torch


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    num_new, num_all = len(q), len(k)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("ihd,jhd->hij", q, k) / q.shape[2] ** 0.5
    hidden = torch.ones(num_new, num_all, dtype=torch.bool, device=q.device)
    hidden = hidden.triu(num_all - num_new + 1)
    weights = scores.masked_fill(hidden, -1e4).softmax(-1)
    return torch.einsum("hij,jhd->ihd", weights, v)
