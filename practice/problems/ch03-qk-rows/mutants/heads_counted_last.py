# Splits the rows as if those of a head did not stand together.
# caught by: sample
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    pairs = weight.reshape(-1, 2, num_heads, *weight.shape[1:])
    return pairs.transpose(0, 1).reshape(weight.shape)
