"""From the row order of GGUF to Hugging Face's, for the weights that RoPE rotates."""

import torch


def to_hub_rows(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    """weight: [num_heads * head_dim, hidden], or a bias [num_heads * head_dim]."""
    raise NotImplementedError("ch03-qk-rows: to_hub_rows")
