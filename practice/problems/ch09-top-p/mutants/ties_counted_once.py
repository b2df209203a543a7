# Adds equal probabilities once, as if they were a single token.
# caught by: edge
import torch


def crossing_prob(probs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    fresh = probs.diff(prepend=torch.full((len(probs), 1), 2.0)) != 0
    once = torch.where(fresh, probs, 0.0)
    crossing = (once.cumsum(-1, dtype=torch.float64) < wanted).sum(-1, keepdim=True)
    return probs.gather(-1, crossing.clamp(max=probs.shape[-1] - 1))
