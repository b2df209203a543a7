# Converts in the other direction, from Hugging Face's order to GGUF's.
# caught by: sample
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    halves = weight.reshape(num_heads, 2, -1, *weight.shape[1:])
    return halves.transpose(1, 2).reshape(weight.shape)
