# Takes 64 for head_dim instead of working it out from num_heads.
# caught by: basic
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    head_dim = min(64, len(weight))
    pairs = weight.reshape(-1, head_dim // 2, 2, *weight.shape[1:])
    return pairs.transpose(1, 2).reshape(weight.shape)
