"""What the scheduler, and all above it, know of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from minisgl.core import Req, SamplingParams
from minisgl.engine.logprobs import TokenLogprob

FinishReason = Literal["stop", "length", "error"]


@dataclass(eq=False)
class Request:
    """What a user asked for, and what has come of it so far. Compared by identity, as `Req` is."""

    uid: int
    input_ids: list[int]
    output_len: int  # how many tokens may be generated
    sampling_params: SamplingParams

    token_ids: list[int] = field(default_factory=list)  # the generated ones
    logprobs: list[TokenLogprob] = field(default_factory=list)  # where they are asked for
    finish_reason: FinishReason | None = None
    num_cached_tokens: int = 0  # of the prompt, which were not computed again

    req: Req = field(init=False)  # from its admission on


def finish_reason(req: Req, eos_ids: frozenset[int]) -> FinishReason | None:
    """Why `req` ends with its newest token, or None while it goes on."""
    if int(req.input_ids[-1]) in eos_ids and not req.sampling_params.ignore_eos:
        return "stop"
    return "length" if len(req.input_ids) == req.max_device_len else None
