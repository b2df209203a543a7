"""Rotary position embedding (RoPE): a token's position as a rotation of its queries and keys."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from minisgl.layers.base import Layer
from minisgl.utils.check import check_number

ROPE_TYPES = ("default", "llama3")


@dataclass(frozen=True)
class Llama3Scaling:
    """How Llama 3.1 stretches RoPE to contexts longer than those it was first trained on."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int

    def __post_init__(self) -> None:
        """Raise ValueError for factors that stretch nothing."""
        for name in ("factor", "low_freq_factor", "original_max_position_embeddings"):
            check_number(name, getattr(self, name), low=0, open_low=True)
        low = self.low_freq_factor
        check_number("high_freq_factor", self.high_freq_factor, low=low, open_low=True)


@dataclass(frozen=True)
class RotaryConfig:
    """The frequencies of a model's RoPE."""

    head_dim: int
    theta: float
    rope_type: str = "default"
    llama3: Llama3Scaling | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a theta that is not positive."""
        check_number("rope_theta", self.theta, low=0, open_low=True)


class Rotary(Layer):
    """Rotates pairs of coordinates by `position * frequency`, one frequency per pair.

    Two positions then meet in a dot product only as their difference. The pair of coordinate
    `i` is `i + head_dim / 2`, the order of Hugging Face checkpoints.

    A layer that takes nothing from the checkpoint: its frequencies follow from the config.

    Source: Su et al., "RoFormer" (2021).
    """

    def __init__(self, config: RotaryConfig) -> None:
        """Raises ValueError for a RoPE type that is not in `ROPE_TYPES`, or lacks its scaling."""
        if config.rope_type not in ROPE_TYPES:
            raise ValueError(
                f"RoPE type must be one of {', '.join(ROPE_TYPES)}, got {config.rope_type!r}: "
                "choose another model"
            )
        if (config.rope_type == "llama3") != (config.llama3 is not None):
            raise ValueError(
                f"RoPE type llama3 goes with a Llama3Scaling, and no other does; got "
                f"{config.rope_type!r} with {config.llama3}"
            )
        even = torch.arange(0, config.head_dim, 2, dtype=torch.float32)
        self._inv_freq = 1.0 / float(config.theta) ** (even / config.head_dim)  # [head_dim / 2]
        if config.llama3 is not None:
            self._inv_freq = _stretch(self._inv_freq, config.llama3)

    def materialize(self, dtype: torch.dtype, device: torch.device) -> None:
        """Move the frequencies to `device`, once; they stay fp32 whatever `dtype` is."""
        # Angles need fp32 in every model: positions above 256 are not exact in bf16.
        self._inv_freq = self._inv_freq.to(device)

    def at(self, positions: torch.Tensor) -> Rotation:
        """The rotation of each token: `positions` is `[num_tokens]`, of any integer type.

        They must be on the device that `materialize` was given (the CPU before that).
        Computed once per forward pass and handed to every layer.
        """
        angles = positions.float()[:, None, None] * self._inv_freq  # [num_tokens, 1, head_dim / 2]
        return Rotation(angles.cos(), angles.sin())


@dataclass(frozen=True)
class Rotation:
    """Cosine and sine of each token's angles, fp32 `[num_tokens, 1, head_dim / 2]`."""

    cos: torch.Tensor
    sin: torch.Tensor

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        """Rotate queries or keys, `[num_tokens, num_heads, head_dim]`, of each token."""
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _stretch(inv_freq: torch.Tensor, scaling: Llama3Scaling) -> torch.Tensor:
    """Slow down the waves longer than the original context, keep short ones, blend between."""
    turns = inv_freq * float(scaling.original_max_position_embeddings) / (2 * math.pi)
    low, high = float(scaling.low_freq_factor), float(scaling.high_freq_factor)
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return inv_freq * (keep + (1 - keep) / float(scaling.factor))
