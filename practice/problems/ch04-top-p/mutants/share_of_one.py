# Takes p of 1, not of what top-k has left of the row.
# caught by: edge
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p
    best = probs.topk(min(256, probs.shape[-1])).values
    count = best.shape[-1]
    crossing = (best.cumsum(-1, dtype=torch.float64) < wanted).sum(-1, keepdim=True)
    threshold = best.gather(-1, crossing.clamp(max=count - 1))
    for row in ((crossing == count) & (top_p < 1)).nonzero()[:, 0].tolist():
        threshold[row] = _crossing(probs[row], wanted[row])
    return torch.where(top_p < 1, threshold, 0.0)


def _crossing(probs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    bins = probs.view(torch.int32) >> 16
    sums = bins.bincount(probs.double()).flip(0)
    reached = sums.cumsum(0)
    crossed = (reached < wanted).sum()
    inside = probs[bins == len(sums) - 1 - crossed].sort(descending=True).values
    reached = reached[crossed] - sums[crossed] + inside.cumsum(0, dtype=torch.float64)
    return inside[(reached < wanted).sum()]
