"""What the scheduler, and all above it, know of a request."""

from __future__ import annotations

from dataclasses import dataclass, field

from minisgl.core import Req, SamplingParams
from minisgl.engine.logprobs import TokenLogprob
from minisgl.scheduler.lifecycle import FinishReason, State, check_transition, last_state


@dataclass(eq=False)
class Request:
    """What a user asked for, and what has come of it so far. Compared by identity, as `Req` is."""

    uid: int
    input_ids: list[int]
    output_len: int  # how many tokens may be generated
    sampling_params: SamplingParams
    timeout: float | None = None  # how long it may take, in seconds
    queue_timeout: float | None = None  # how long it may wait

    token_ids: list[int] = field(default_factory=list)  # the generated ones
    logprobs: list[TokenLogprob] = field(default_factory=list)  # where they are asked for
    arrival: float | None = None  # the time of the first step that saw it
    state: State = State.WAITING
    finish_reason: FinishReason | None = None
    error: Exception | None = None  # what failed, where the reason is "error"
    num_cached_tokens: int = 0  # of the prompt, which were not computed again
    number: int = 0  # in the order of arrival
    num_retractions: int = 0  # how often it had to give its row and its pages back
    num_overtaken: int = 0  # how often somebody who came later was admitted before it

    req: Req = field(init=False)  # from its admission on

    def known_ids(self) -> list[int]:
        """The tokens so far: the prompt and what was generated."""
        return self.input_ids + self.token_ids

    def move(self, state: State) -> None:
        """Go on to a state; an AssertionError where no way leads there."""
        check_transition(self.state, state)
        self.state = state

    def end(self, reason: FinishReason, error: Exception | None = None) -> None:
        """Go to the last state, for this reason."""
        state = last_state(reason)
        check_transition(self.state, state)
        self.error, self.finish_reason, self.state = error, reason, state

    def is_late(self, now: float) -> bool:
        """Whether a limit has passed at `now`, in seconds; the first call sets the arrival."""
        self.arrival = now if self.arrival is None else self.arrival
        has_begun = self.state is not State.WAITING or self.num_retractions > 0
        limits = [self.timeout] + [self.queue_timeout] * (not has_begun)
        return any(limit is not None and now - self.arrival >= limit for limit in limits)


def finish_reason(req: Req, eos_ids: frozenset[int]) -> FinishReason | None:
    """Why `req` ends with its newest token, or None while it goes on."""
    if int(req.input_ids[-1]) in req.sampling_params.end_ids(eos_ids):
        return "stop"
    return "length" if len(req.input_ids) == req.max_device_len else None
