"""What the model asks of an attention backend."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch

from minisgl.core import Batch


class BaseAttnBackend(ABC):
    """Computes attention for ragged batches: prefills, prefix hits and decodes side by side.

    A token at position `p` of a request sees that request's positions up to `p`, whether their
    keys and values come from this batch or were in the cache before.
    """

    @abstractmethod
    def prepare_metadata(self, batch: Batch) -> None:
        """Set `batch.attn_metadata`; called once per batch, before the first layer."""

    @abstractmethod
    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer_id: int, batch: Batch
    ) -> torch.Tensor:
        """Store the batch's new keys and values, then attend; returns the shape of `q`.

        `q` is `[num_tokens, num_qo_heads, head_dim]`; `k` and `v` are
        `[num_tokens, num_kv_heads, head_dim]`.
        """
