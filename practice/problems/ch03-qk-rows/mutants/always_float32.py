# Converts through NumPy's float32 and forgets the type that the weight had.
# caught by: edge
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    pairs = weight.float().reshape(num_heads, -1, 2, *weight.shape[1:])
    return pairs.transpose(1, 2).reshape(weight.shape)
