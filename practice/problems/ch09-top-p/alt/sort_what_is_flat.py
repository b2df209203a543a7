# The plain loop over rows: a few of the best, and the whole row sorted where they are too few.
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    thresholds = []
    for row, (p,) in zip(probs, top_p.tolist(), strict=True):
        wanted = row.sum(dtype=torch.float64) * p
        best = row.topk(min(256, len(row))).values
        if p < 1 and best.sum(dtype=torch.float64) < wanted:
            best = row.sort(descending=True).values
        thresholds.append(crossing_prob(best, wanted) if p < 1 else torch.tensor(0.0))
    return torch.stack(thresholds)[:, None]


def crossing_prob(probs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return probs[torch.searchsorted(probs.cumsum(0, dtype=torch.float64), wanted)]
