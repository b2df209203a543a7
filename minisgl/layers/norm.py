"""Root-mean-square normalisation."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from minisgl.layers.base import Layer


class RMSNorm(Layer):
    """Scales each vector to unit root mean square, then by `weight`.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019).
    """

    def __init__(self, size: int, eps: float) -> None:
        self.weight = torch.empty(size, device="meta")
        self._eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise the last dimension: `[..., size]` to `[..., size]`."""
        # The mean of squares in 16-bit types would lose most of its digits.
        normed = F.rms_norm(x.float(), self.weight.shape, eps=self._eps)
        return self.weight * normed.to(x.dtype)

    def forward_add(
        self, x: torch.Tensor, residual: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add `x` to the residual stream in place; return its norm, and the stream.

        Between two blocks of a decoder an addition is always followed by a norm. As one call the
        pair can share its memory traffic, and here saves the allocation of the sum.
        """
        residual += x
        return self.forward(residual), residual
