# Puts the second channels of the pairs in front.
# caught by: sample
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    pairs = weight.reshape(num_heads, -1, 2, *weight.shape[1:])
    return pairs.flip(2).transpose(1, 2).reshape(weight.shape)
