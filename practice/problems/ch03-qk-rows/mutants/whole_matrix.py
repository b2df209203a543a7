# Deals the rows of the whole matrix, so that rows leave their head.
# caught by: sample
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    pairs = weight.reshape(-1, 2, *weight.shape[1:])
    return pairs.transpose(0, 1).reshape(weight.shape)
