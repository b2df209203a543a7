# Gives up where the best 256 are not enough and filters nothing.
# caught by: edge
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    best = probs.topk(min(256, probs.shape[-1])).values
    count = best.shape[-1]
    crossing = (best.cumsum(-1, dtype=torch.float64) < wanted).sum(-1, keepdim=True)
    threshold = best.gather(-1, crossing.clamp(max=count - 1))
    threshold = torch.where(crossing == count, 0.0, threshold)
    return torch.where(top_p < 1, threshold, 0.0)
