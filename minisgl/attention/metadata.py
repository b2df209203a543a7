"""The boundaries in a batch without padding."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class BaseAttnMetadata:
    """Where each request of a batch begins and ends; the same for every layer.

    With `cu_seqlens` as the running sum of lengths, the tokens of request `i` are rows
    `cu_seqlens[i]` to `cu_seqlens[i + 1]`: no padding, and no list of requests in the kernel.
    """

    cu_seqlens_q: torch.Tensor  # int32 [batch_size + 1], of the tokens that the batch computes
    cu_seqlens_k: torch.Tensor  # int32 [batch_size + 1], of the tokens that they may look at
