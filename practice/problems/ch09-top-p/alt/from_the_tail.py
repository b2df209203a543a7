# Adds from the small end, and takes more and more of the best until it is enough.
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    total = probs.double().sum(-1, keepdim=True)
    may_go = total - top_p * total
    rows, size, count = len(probs), probs.shape[1], 64
    threshold = torch.zeros(rows, 1)
    open_rows = (top_p[:, 0] < 1).nonzero()[:, 0]
    while len(open_rows):
        count = min(4 * count, size)
        best = probs[open_rows].topk(count).values
        left = total[open_rows] - best.double().cumsum(-1)  # what a cut behind each would drop
        done = left <= may_go[open_rows]
        first = done.int().argmax(-1, keepdim=True)
        found = done.any(-1)
        threshold[open_rows[found]] = best.gather(-1, first)[found]
        open_rows = open_rows[~found]
    return threshold
