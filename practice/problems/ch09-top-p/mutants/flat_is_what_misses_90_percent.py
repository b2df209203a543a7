# Takes for flat what has less than 0.9 within the best 256, whatever p is.
# caught by: edge
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    best = probs.topk(min(256, probs.shape[-1])).values
    threshold = crossing_prob(best, wanted)
    total = probs.sum(-1, keepdim=True, dtype=torch.float64)
    beyond = (best.sum(-1, keepdim=True, dtype=torch.float64) < 0.9 * total) & (top_p < 1)
    rows = beyond[:, 0].nonzero()[:, 0]
    if len(rows):
        every = probs[rows].sort(descending=True).values
        threshold[rows] = crossing_prob(every, wanted[rows])
    return torch.where(top_p < 1, threshold, 0.0)
