# Sorts nothing: halves the range in which the threshold lies, on the bits of the floats.
import torch


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    bits = probs.view(torch.int32)  # positive floats and their bits order alike
    enough = torch.zeros_like(wanted, dtype=torch.int32)
    for place in reversed(range(30)):
        tried = enough | (1 << place)
        reached = torch.where(bits >= tried, probs, 0.0).sum(-1, keepdim=True, dtype=torch.float64)
        enough = torch.where(reached >= wanted, tried, enough)
    return torch.where(top_p < 1, enough.view(torch.float32), 0.0)
