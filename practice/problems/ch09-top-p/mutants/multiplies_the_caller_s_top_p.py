# Multiplies in place, so that the caller's top_p is another one the next time.
# caught by: edge
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    filtered = top_p < 1
    wanted = top_p.mul_(probs.sum(-1, keepdim=True, dtype=torch.float64))
    best = probs.topk(min(256, probs.shape[-1])).values
    threshold = crossing_prob(best, wanted)
    beyond = (best.sum(-1, keepdim=True, dtype=torch.float64) < wanted) & filtered
    rows = beyond[:, 0].nonzero()[:, 0]
    if len(rows):
        every = probs[rows].sort(descending=True).values
        threshold[rows] = crossing_prob(every, wanted[rows])
    return torch.where(filtered, threshold, 0.0)
