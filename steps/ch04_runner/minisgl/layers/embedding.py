"""From token ids to vectors, and from vectors to scores over the vocabulary."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from minisgl.core import get_global_ctx
from minisgl.layers.base import Layer


class Embedding(Layer):
    """A row of `weight` `[vocab_size, hidden_size]` per token id."""

    def __init__(self, vocab_size: int, hidden_size: int) -> None:
        self.weight = torch.empty(vocab_size, hidden_size, device="meta")

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """`[num_tokens]` int32 or int64 to `[num_tokens, hidden_size]`."""
        return F.embedding(input_ids, self.weight)


class LMHead(Layer):
    """Scores (logits) over the vocabulary, only for the positions that will be sampled.

    A prefill of a thousand tokens samples one; the head is the model's largest matrix, so the
    other rows would be the most expensive thing computed for nothing.
    """

    def __init__(self, vocab_size: int, hidden_size: int, tied_to: Embedding | None = None) -> None:
        """`tied_to`: use that embedding's matrix, and take none from the checkpoint."""
        self._tied_to = tied_to
        if tied_to is None:
            self.weight = torch.empty(vocab_size, hidden_size, device="meta")

    @property
    def is_tied(self) -> bool:
        """Whether the matrix is the embedding's."""
        return self._tied_to is not None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[num_tokens, hidden_size]` of the current batch to `[num_sampled, vocab_size]`."""
        batch = get_global_ctx().batch
        if batch.is_prefill:
            x = x[batch.logits_rows]
        return F.linear(x, self.weight if self._tied_to is None else self._tied_to.weight)
