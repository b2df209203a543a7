# Sorts every row as soon as one of them needs more than 256: right, and slow.
# caught by: large
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    best = probs.topk(min(256, probs.shape[-1])).values
    threshold = crossing_prob(best, wanted)
    beyond = (best.sum(-1, keepdim=True, dtype=torch.float64) < wanted) & (top_p < 1)
    if beyond.any():
        threshold = crossing_prob(probs.sort(descending=True).values, wanted)
    return torch.where(top_p < 1, threshold, 0.0)
