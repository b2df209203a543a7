# Takes p of the best 256 alone instead of the whole row.
# caught by: edge
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    best = probs.topk(min(256, probs.shape[-1])).values
    wanted = top_p * best.sum(-1, keepdim=True, dtype=torch.float64)
    threshold = crossing_prob(best, wanted)
    return torch.where(top_p < 1, threshold, 0.0)
