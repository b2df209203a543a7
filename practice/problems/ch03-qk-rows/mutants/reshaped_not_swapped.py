# Reshapes to the halves without swapping axes, which moves no number at all.
# caught by: sample
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    pairs = weight.reshape(num_heads, -1, 2, *weight.shape[1:])
    return pairs.reshape(num_heads, 2, -1, *weight.shape[1:]).reshape(weight.shape)
