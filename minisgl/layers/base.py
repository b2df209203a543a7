"""What every layer has in common: children, weights, and how a checkpoint finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import torch

L = TypeVar("L", bound="Layer")


class Layer:
    """A node of the model tree: public tensor attributes are weights, layer attributes children.

    The path of attributes from the root is the weight's name in the checkpoint, so a model needs
    no table of names: `root.model.norm.weight` is the tensor `model.norm.weight`. Attributes
    that start with an underscore are neither weights nor children.

    A layer is born on the meta device (shapes, no memory), gets its memory from
    `materialize`, and its values from `load`.
    """

    # False where the attribute that holds this layer is our name, not the checkpoint's.
    named_in_checkpoint = True

    def children(self) -> Iterator[tuple[str, Layer]]:
        """The layers directly below this one, in the order in which they were assigned."""
        for name, value in vars(self).items():
            if isinstance(value, Layer) and not name.startswith("_"):
                yield name, value

    def weights(self) -> dict[str, torch.Tensor]:
        """This layer's own tensors by attribute name."""
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, torch.Tensor) and not name.startswith("_")
        }

    def parts(self) -> dict[str, torch.Size]:
        """Name and shape of each checkpoint tensor that this layer itself takes."""
        return {name: weight.shape for name, weight in self.weights().items()}

    def load(self, part: str, tensor: torch.Tensor) -> None:
        """Copy a checkpoint tensor into its final place, converting dtype and device.

        Raises:
            ValueError: the tensor does not have the shape that `parts` asks for.
        """
        self._check_shape(part, tensor)
        getattr(self, part).copy_(tensor)

    def _check_shape(self, part: str, tensor: torch.Tensor) -> None:
        expected = self.parts()[part]
        if tensor.shape != expected:
            raise ValueError(
                f"{part} must have shape {list(expected)}, the checkpoint has {list(tensor.shape)}"
            )

    def slots(self, prefix: str = "") -> Iterator[tuple[str, Layer, str]]:
        """Every checkpoint name from here down, as `(name, layer that loads it, its part)`."""
        for part in self.parts():
            yield prefix + part, self, part
        for name, child in self.children():
            yield from child.slots(f"{prefix}{name}." if child.named_in_checkpoint else prefix)

    def materialize(self, dtype: torch.dtype, device: torch.device) -> None:
        """Give every weight from here down uninitialised memory of its final type and place.

        A layer with tensors that are not weights moves them to `device` in its own version.
        """
        for name, weight in self.weights().items():
            setattr(self, name, torch.empty_like(weight, dtype=dtype, device=device))
        for _, child in self.children():
            child.materialize(dtype, device)


class LayerList(Layer, Generic[L]):
    """Layers that the checkpoint numbers, such as `model.layers.0`, `model.layers.1`, …"""

    def __init__(self, layers: list[L]) -> None:
        self._layers = layers

    def __iter__(self) -> Iterator[L]:
        return iter(self._layers)

    def children(self) -> Iterator[tuple[str, Layer]]:
        for index, layer in enumerate(self._layers):
            yield str(index), layer
