# Sorts the whole vocabulary: right, and slower than the forward pass.
# caught by: large
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    best = probs.sort(descending=True).values
    threshold = crossing_prob(best, wanted)
    return torch.where(top_p < 1, threshold, 0.0)
