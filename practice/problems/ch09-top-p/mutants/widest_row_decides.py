# Cuts every row at the rank of the row that needs most tokens.
# caught by: basic
import torch


def crossing_prob(probs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    crossing = (probs.cumsum(-1, dtype=torch.float64) < wanted).sum(-1, keepdim=True)
    crossing = crossing.amax(0, keepdim=True).expand_as(crossing)
    return probs.gather(-1, crossing.clamp(max=probs.shape[-1] - 1))
