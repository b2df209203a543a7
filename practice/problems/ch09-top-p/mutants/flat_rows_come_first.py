# Writes the thresholds of the flat rows into the first rows of the batch.
# caught by: edge
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    best = probs.topk(min(256, probs.shape[-1])).values
    threshold = crossing_prob(best, wanted)
    beyond = (best.sum(-1, keepdim=True, dtype=torch.float64) < wanted) & (top_p < 1)
    rows = beyond[:, 0].nonzero()[:, 0]
    if len(rows):
        every = probs[rows].sort(descending=True).values
        threshold[: len(rows)] = crossing_prob(every, wanted[rows])
    return torch.where(top_p < 1, threshold, 0.0)
