# Adds in float32, which forgets the small ones of a long tail.
# caught by: edge
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p.float() * probs.sum(-1, keepdim=True)
    best = probs.topk(min(256, probs.shape[-1])).values
    threshold = crossing_prob(best, wanted)
    beyond = (best.sum(-1, keepdim=True) < wanted) & (top_p < 1)
    rows = beyond[:, 0].nonzero()[:, 0]
    if len(rows):
        every = probs[rows].sort(descending=True).values
        threshold[rows] = crossing_prob(every, wanted[rows])
    return torch.where(top_p < 1, threshold, 0.0)


def crossing_prob(probs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    crossing = (probs.cumsum(-1) < wanted).sum(-1, keepdim=True)
    return probs.gather(-1, crossing.clamp(max=probs.shape[-1] - 1))
