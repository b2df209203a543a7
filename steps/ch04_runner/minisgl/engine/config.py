"""How an engine is set up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from minisgl.utils.check import check_number


@dataclass(frozen=True)
class EngineConfig:
    """What to load and how to compute it.

    `model` is a Hugging Face folder or a repository of the hub. `dtype` None means fp32 on a
    CPU, whose 16-bit products are slow, and bf16 on a GPU. Requests without a seed of their
    own derive theirs from `seed`.
    """

    model: str | Path
    device: str = "cpu"
    dtype: torch.dtype | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for a seed that no generator takes."""
        check_number("seed", self.seed, low=-(2**63), high=2**63 - 1, whole=True)

    @property
    def compute_dtype(self) -> torch.dtype:
        """`dtype`, or what suits the device."""
        on_cpu = str(self.device).startswith("cpu")  # "cpu:0" is one too
        return self.dtype or (torch.float32 if on_cpu else torch.bfloat16)
