# Multiplies in place, so that the caller's top_p is another one the next time.
# caught by: edge
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    filtered = top_p < 1
    wanted = top_p.mul_(probs.sum(-1, keepdim=True, dtype=torch.float64))
    best = probs.topk(min(_FIRST_CANDIDATES, probs.shape[-1])).values
    count = best.shape[-1]
    crossing = (best.cumsum(-1, dtype=torch.float64) < wanted).sum(-1, keepdim=True)
    threshold = best.gather(-1, crossing.clamp(max=count - 1))
    for row in ((crossing == count) & filtered).nonzero()[:, 0].tolist():
        threshold[row] = _crossing(probs[row], wanted[row])
    return torch.where(filtered, threshold, 0.0)
