"""How an engine is set up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from minisgl.utils.check import check_number

DEFAULT_MAX_SEQ_LEN = 8192
_INT32 = 2**31 - 1  # places in the cache are counted in int32


@dataclass(frozen=True)
class EngineConfig:
    """What to load and how to compute it.

    `model` is a Hugging Face folder or a repository of the hub. `dtype` None means fp32 on a
    CPU, whose 16-bit products are slow, and bf16 on a GPU. Requests without a seed of their
    own derive theirs from `seed`.

    At most `max_running_reqs` requests run at once, none longer than `max_seq_len` tokens (None:
    the model's context, but no more than 8192). Their KV lies in `num_pages` pages of `page_size`
    tokens (None: pages for four of the longest).

    A step computes at most `max_batch_tokens` tokens, unless as many requests or more decode: the
    longer a step, the longer those who decode wait for their next token. `schedule_policy` says who
    is admitted first: "fcfs" in the order of arrival, "lpm" who shares the longest cached prefix.

    With `overlap` the scheduler prepares a step while the one before it is computed; None means
    on a GPU, which has nothing to do meanwhile. A CPU has.

    `weight_layout` "measured" gives each large weight on a CPU the layout that is fastest there,
    which may take up to twice the weights' memory; "plain" leaves it as in the checkpoint.
    """

    model: str | Path
    device: str = "cpu"
    dtype: torch.dtype | None = None
    seed: int = 0
    max_running_reqs: int = 32
    max_seq_len: int | None = None
    page_size: int = 16
    num_pages: int | None = None
    max_batch_tokens: int = 256
    schedule_policy: Literal["fcfs", "lpm"] = "fcfs"
    overlap: bool | None = None
    weight_layout: Literal["measured", "plain"] = "measured"

    def __post_init__(self) -> None:
        """Raise ValueError for sizes that no request fits in."""
        check_number("seed", self.seed, low=-(2**63), high=2**63 - 1, whole=True)
        check_number("max_running_reqs", self.max_running_reqs, low=1, high=_INT32, whole=True)
        if self.max_seq_len is not None:  # a prompt's token and a new one
            check_number("max_seq_len", self.max_seq_len, low=2, high=_INT32, whole=True)
        check_number("page_size", self.page_size, low=1, high=_INT32, whole=True)
        if self.num_pages is not None:
            check_number("num_pages", self.num_pages, low=1, high=_INT32, whole=True)
        check_number("max_batch_tokens", self.max_batch_tokens, low=1, high=_INT32, whole=True)
        choices: dict[str, tuple[Any, ...]] = {
            "weight_layout": ("measured", "plain"),
            "schedule_policy": ("fcfs", "lpm"),
            "overlap": (True, False, None),
        }
        for name, allowed in choices.items():
            if (value := getattr(self, name)) not in allowed:
                rule = " or ".join(map(repr, allowed))
                raise ValueError(f"{name} must be {rule}, got {value!r}")

    @property
    def on_cpu(self) -> bool:
        """Whether the CPU computes."""
        return str(self.device).startswith("cpu")  # "cpu:0" is one too

    @property
    def overlaps(self) -> bool:
        """`overlap`, or what suits the device."""
        return not self.on_cpu if self.overlap is None else self.overlap

    @property
    def compute_dtype(self) -> torch.dtype:
        """`dtype`, or what suits the device."""
        return self.dtype or (torch.float32 if self.on_cpu else torch.bfloat16)
