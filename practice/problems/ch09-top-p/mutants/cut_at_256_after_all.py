# Gives up where the best 256 are not enough and filters nothing.
# caught by: edge
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    best = probs.topk(min(256, probs.shape[-1])).values
    threshold = crossing_prob(best, wanted)
    enough = best.sum(-1, keepdim=True, dtype=torch.float64) >= wanted
    threshold = torch.where(enough, threshold, 0.0)
    return torch.where(top_p < 1, threshold, 0.0)
