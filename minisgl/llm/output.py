"""What a caller gets back."""

from __future__ import annotations

from dataclasses import dataclass

from minisgl.engine.logprobs import TokenLogprob
from minisgl.scheduler.request import FinishReason


@dataclass(frozen=True)
class GenerateOutput:
    """A finished request.

    `token_ids` holds every generated token, the one that ended the request included; `text`
    leaves special tokens out. `finish_reason` is `"stop"` at the model's own end or one
    of `stop_token_ids`, `"length"` at `max_tokens` or the engine's `max_seq_len`, `"timeout"` or
    `"abort"` when it was ended early. `num_cached_tokens` tokens of the prompt came from the cache
    of earlier requests.
    `logprobs` has an entry per token where the request asked for it.
    """

    text: str
    token_ids: list[int]
    finish_reason: FinishReason
    num_prompt_tokens: int
    num_cached_tokens: int
    logprobs: list[TokenLogprob] | None = None


@dataclass(frozen=True)
class StreamOutput:
    """News of a running request: the texts joined are the whole text, the last one has a reason."""

    text: str
    token_ids: list[int]
    finish_reason: FinishReason | None
