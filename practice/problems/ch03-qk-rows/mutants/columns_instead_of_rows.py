# Reorders the columns, which are the model's hidden channels.
# caught by: basic
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    pairs = weight.reshape(len(weight), -1, 2)
    return pairs.transpose(1, 2).reshape(weight.shape)
