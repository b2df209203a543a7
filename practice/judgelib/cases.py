"""What a problem's `cases.py` is made of: cases in groups, drawn from a seed.

    from practice.judgelib.cases import Case, randn

    def cases(rng: random.Random) -> dict[str, list[Case]]:
        return {
            "sample": [Case("两个 token", "two tokens", args=(…,))],  # the same for every seed
            "basic": […], "edge": […], "random": […], "large": […],   # drawn from `rng`
        }

All randomness comes from `rng`: the same seed gives the same cases. A label says what is special
about a case, in words that help a reader who may not see it ("a prefix that ends on a page
boundary"). Samples are shown whole, also in the statements; so are basic cases that fail.

What a case holds depends on the kind: `call` gets `entry(*args, **kwargs)`, and changing these is
an error, since they are the caller's; a driver (`ops`, `engine`, `bug`) gets `run(ops)`, and where
`ops` is a list it answers with a list of as many results, so that a verdict can name the operation;
`predict` has one case with the trace in `ops`.

`oracle.py` has `expected(case) -> value`: an independent way to the answer, slow and plain, which
never shares code with the solution. It runs outside the box. Values are built of None, bool, int,
float, str, bytes, list, tuple, dict and CPU tensors, and are compared with their exact types.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

GROUPS = ("sample", "basic", "edge", "random", "large")
SHOWN_WHOLE = ("sample", "basic")


@dataclass(frozen=True)
class Case:
    """One input, with a label in both languages.

    `plain` says that the expected value may be constant, zero or its own input, which the audit
    otherwise takes for a case that proves nothing.
    """

    zh: str
    en: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    ops: Any = None
    plain: bool = False


def randn(rng: random.Random, *shape: int, scale: float = 1.0) -> torch.Tensor:
    """Normal float32 numbers of this shape, drawn from `rng`."""
    import torch

    generator = torch.Generator().manual_seed(rng.getrandbits(62))
    return torch.randn(*shape, generator=generator) * scale
