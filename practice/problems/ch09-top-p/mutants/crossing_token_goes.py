# Keeps only tokens whose sum stays within p: the one that crosses goes.
# caught by: basic
import torch


def crossing_prob(probs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    crossing = (probs.cumsum(-1, dtype=torch.float64) < wanted).sum(-1, keepdim=True)
    return probs.gather(-1, (crossing - 1).clamp(0, probs.shape[-1] - 1))
