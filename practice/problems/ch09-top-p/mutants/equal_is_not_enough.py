# Goes on where the sum equals p, so one token too many stays.
# caught by: sample
import torch


def crossing_prob(probs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    crossing = (probs.cumsum(-1, dtype=torch.float64) <= wanted).sum(-1, keepdim=True)
    return probs.gather(-1, crossing.clamp(max=probs.shape[-1] - 1))
