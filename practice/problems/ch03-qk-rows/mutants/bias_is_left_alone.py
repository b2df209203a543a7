# Forgets that a bias has the same rows and leaves it as it is.
# caught by: edge
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    if weight.dim() == 1:
        return weight.clone()
    pairs = weight.reshape(num_heads, -1, 2, weight.shape[1])
    return pairs.transpose(1, 2).reshape(weight.shape)
