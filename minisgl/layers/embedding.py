"""From token ids to vectors, and from vectors to scores over the vocabulary."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from minisgl.core import get_global_ctx
from minisgl.layers.base import Layer
from minisgl.layers.layout import Choice, Product


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
        self._product: Product | None = None

    @property
    def is_tied(self) -> bool:
        """Whether the matrix is the embedding's."""
        return self._tied_to is not None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[num_tokens, hidden_size]` of the current batch to `[num_sampled, vocab_size]`."""
        batch = get_global_ctx().batch
        if batch.is_prefill:
            x = x[batch.logits_rows]
        return F.linear(x, self.matrix) if self._product is None else self._product(x, None)

    @property
    def matrix(self) -> torch.Tensor:
        """The weight that this layer multiplies by, `[vocab_size, hidden_size]`."""
        return self.weight if self._tied_to is None else self._tied_to.weight

    def use_layout(self, choice: Choice) -> None:
        """Multiply in this layout from now on. Where it can do without the weight, that is gone."""
        self._product = choice.apply(self.matrix)
        if not choice.needs_plain and self._tied_to is None:
            self.weight = self.weight.to("meta")
