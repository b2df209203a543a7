# Takes the weights as they come: all shapes fit, so nothing seems to be missing.
# caught by: sample
import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    return weight.clone()
