# Takes every 16-bit number for a float16.
# caught by: edge
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    narrow = weight if weight.dtype == torch.float32 else weight.half()
    pairs = narrow.reshape(num_heads, -1, 2, *weight.shape[1:])
    return pairs.transpose(1, 2).reshape(weight.shape).to(weight.dtype)
