# Sorts the vocabulary in Python: the tensor goes to the host, and all of it is sorted all the same.
# caught by: large
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    found = []
    for row, share in zip(probs.tolist(), top_p[:, 0].tolist(), strict=True):
        wanted, reached, prob = share * sum(row), 0.0, 0.0
        for prob in sorted(row, reverse=True):
            reached += prob
            if reached >= wanted:
                break
        found.append([prob if share < 1 else 0.0])
    return torch.tensor(found)
