# Puts the threshold above a probability that several tokens share.
# caught by: sample
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    best = probs.topk(min(256, probs.shape[-1])).values
    threshold = crossing_prob(best, wanted)
    beyond = (best.sum(-1, keepdim=True, dtype=torch.float64) < wanted) & (top_p < 1)
    rows = beyond[:, 0].nonzero()[:, 0]
    if len(rows):
        every = probs[rows].sort(descending=True).values
        threshold[rows] = crossing_prob(every, wanted[rows])
    tied = (probs == threshold).sum(-1, keepdim=True) > 1
    above = torch.nextafter(threshold, torch.tensor(1.0))
    threshold = torch.where(tied, above, threshold)
    return torch.where(top_p < 1, threshold, 0.0)
