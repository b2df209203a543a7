"""From the row order of GGUF to Hugging Face's, for the weights that RoPE rotates."""

import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    """weight: [num_heads * head_dim, hidden], or a bias [num_heads * head_dim]."""
    columns = weight.shape[1:]
    pairs = weight.reshape(num_heads, -1, 2, *columns)  # [num_heads, head_dim / 2, 2, …]
    return pairs.transpose(1, 2).reshape(weight.shape)
