"""The non-linearity of the feed-forward block."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def silu_and_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """SwiGLU's gate: `silu(gate) * up`, all `[num_tokens, intermediate_size]`.

    Source: Shazeer, "GLU Variants Improve Transformer" (2020).
    """
    return F.silu(gate).mul_(up)
