# Reorders the columns too, as if the input were rotated like the output.
# caught by: edge
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    pairs = weight.reshape(num_heads, -1, 2, *weight.shape[1:])
    rows = pairs.transpose(1, 2).reshape(weight.shape)
    if weight.dim() == 1 or weight.shape[1] % 2:
        return rows
    return torch.cat([rows[:, 0::2], rows[:, 1::2]], dim=1)
