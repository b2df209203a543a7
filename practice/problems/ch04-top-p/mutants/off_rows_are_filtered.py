# Treats a top_p of 1 like any other: rounding may then cut what must stay.
# caught by: basic
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    best = probs.topk(min(256, probs.shape[-1])).values
    count = best.shape[-1]
    crossing = (best.cumsum(-1, dtype=torch.float64) < wanted).sum(-1, keepdim=True)
    threshold = best.gather(-1, crossing.clamp(max=count - 1))
    for row in (crossing == count).nonzero()[:, 0].tolist():
        threshold[row] = _crossing(probs[row], wanted[row])
    return threshold


def _crossing(probs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    bins = probs.view(torch.int32) >> 16
    sums = bins.bincount(probs.double()).flip(0)
    reached = sums.cumsum(0)
    crossed = (reached < wanted).sum()
    inside = probs[bins == len(sums) - 1 - crossed].sort(descending=True).values
    reached = reached[crossed] - sums[crossed] + inside.cumsum(0, dtype=torch.float64)
    return inside[(reached < wanted).sum()]
