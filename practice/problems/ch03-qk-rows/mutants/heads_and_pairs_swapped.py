# Swaps the axis of heads with that of pairs.
# caught by: sample
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    pairs = weight.reshape(num_heads, -1, 2, *weight.shape[1:])
    return pairs.transpose(0, 1).reshape(weight.shape)
