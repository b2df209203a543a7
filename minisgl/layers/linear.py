"""Matrix products with a weight: one, or several that share their input and run as one."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from minisgl.layers.base import Layer
from minisgl.layers.layout import Choice, Product


class Linear(Layer):
    """`x @ weight.T + bias`, the weight `[out_features, in_features]` as in checkpoints."""

    def __init__(self, in_features: int, out_features: int, bias: bool) -> None:
        self.weight = torch.empty(out_features, in_features, device="meta")
        self.bias = torch.empty(out_features, device="meta") if bias else None
        self._product: Product | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[num_tokens, in_features]` to `[num_tokens, out_features]`."""
        if self._product is not None:
            return self._product(x, self.bias)
        return F.linear(x, self.weight, self.bias)

    @property
    def matrix(self) -> torch.Tensor:
        """What this layer multiplies by, `[out_features, in_features]`."""
        return self.weight

    def use_layout(self, choice: Choice) -> None:
        """Multiply in this layout from now on. Where it can do without the weight, that is gone."""
        self._product = choice.apply(self.weight)
        if not choice.needs_plain:
            self.weight = self.weight.to("meta")


class MergedLinear(Linear):
    """Linear layers with the same input, computed as one: their weights are stacked row by row.

    One product instead of three (q, k, v) or two (gate, up) reads the input once. The checkpoint
    names the members, not the whole, so each member's tensors are parts of this layer.
    """

    named_in_checkpoint = False

    def __init__(self, in_features: int, members: dict[str, int], bias: bool) -> None:
        """`members` maps the checkpoint's name of each member to its `out_features`."""
        super().__init__(in_features, sum(members.values()), bias)
        self._members = members

    def parts(self) -> dict[str, torch.Size]:
        return {
            f"{member}.{name}": torch.Size([rows, *weight.shape[1:]])
            for member, rows in self._members.items()
            for name, weight in self.weights().items()
        }

    def load(self, part: str, tensor: torch.Tensor) -> None:
        self._check_shape(part, tensor)
        member, name = part.split(".")
        blocks = self.weights()[name].split(list(self._members.values()))
        blocks[list(self._members).index(member)].copy_(tensor)

    def forward_split(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """`[num_tokens, in_features]` to one `[num_tokens, out_features]` view per member."""
        return self.forward(x).split(list(self._members.values()), dim=-1)
