# Keeps what has at least 1 - p of the best: that is min-p, not top-p.
# caught by: sample
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    least = (1 - top_p) * probs.amax(-1, keepdim=True)
    return torch.where(top_p < 1, least, 0.0).float()
