# Returns the largest probability that goes, so that it stays as well.
# caught by: sample
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    best = probs.topk(min(256, probs.shape[-1])).values
    threshold = crossing_prob(best, wanted)
    below = torch.where(probs < threshold, probs, 0.0)
    threshold = below.amax(-1, keepdim=True)
    beyond = (best.sum(-1, keepdim=True, dtype=torch.float64) < wanted) & (top_p < 1)
    rows = beyond[:, 0].nonzero()[:, 0]
    if len(rows):
        every = probs[rows].sort(descending=True).values
        threshold[rows] = crossing_prob(every, wanted[rows])
    return torch.where(top_p < 1, threshold, 0.0)
