"""What a caller gets back."""

from __future__ import annotations

from dataclasses import dataclass

from minisgl.scheduler.request import FinishReason


@dataclass(frozen=True)
class GenerateOutput:
    """A finished request.

    `token_ids` holds every generated token, the one that ended the request included; `text`
    leaves special tokens out. `finish_reason` is `"stop"` when the model ended its answer and
    `"length"` when `max_tokens` or the longest text that the engine computes did.
    `num_cached_tokens` tokens of the prompt came from the cache of earlier requests.
    """

    text: str
    token_ids: list[int]
    finish_reason: FinishReason
    num_prompt_tokens: int
    num_cached_tokens: int


@dataclass(frozen=True)
class StreamOutput:
    """News of a running request: the texts joined are the whole text, the last one has a reason."""

    text: str
    token_ids: list[int]
    finish_reason: FinishReason | None
