# Reorders the first head and leaves the others alone.
# caught by: sample
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    head_dim = len(weight) // num_heads
    return torch.cat([weight[0:head_dim:2], weight[1:head_dim:2], weight[head_dim:]])
