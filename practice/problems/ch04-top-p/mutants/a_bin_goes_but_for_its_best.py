# Stops at the bin in which the sum crosses and keeps only its best.
# caught by: edge
import torch


def _crossing(probs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    bins = probs.view(torch.int32) >> 16
    sums = bins.bincount(probs.double()).flip(0)
    reached = sums.cumsum(0)
    crossed = (reached < wanted).sum()
    inside = probs[bins == len(sums) - 1 - crossed].sort(descending=True).values
    reached = reached[crossed] - sums[crossed] + inside.cumsum(0, dtype=torch.float64)
    return inside[0]
