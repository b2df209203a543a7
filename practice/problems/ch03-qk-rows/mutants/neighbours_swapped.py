# Swaps the two rows of each pair and leaves the pairs where they are.
# caught by: sample
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    pairs = weight.reshape(num_heads, -1, 2, *weight.shape[1:])
    return pairs.flip(2).reshape(weight.shape)
