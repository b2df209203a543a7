"""Where a request stands, and why it ended.

    WAITING ──> PREFILL ──> DECODE ──> FINISHED
       │           │ └────────│───────────^      its first token was its last
       └───────────┴──────────┴──────> ABORTED   cancelled, too late, or failed

These are teaching states: an engine may well keep no such field, and only move a request from one
list to the next.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

FinishReason = Literal["stop", "length", "abort", "timeout", "error"]


class State(Enum):
    """What is being done for a request."""

    WAITING = "waiting"  # nothing yet: it holds no row and no page
    PREFILL = "prefill"  # its prompt is being computed
    DECODE = "decode"  # a token per step
    FINISHED = "finished"  # its answer is complete
    ABORTED = "aborted"  # cancelled, too late, or failed


_NEXT = {
    State.WAITING: {State.PREFILL, State.ABORTED},
    State.PREFILL: {State.DECODE, State.FINISHED, State.ABORTED},
    State.DECODE: {State.FINISHED, State.ABORTED},
    State.FINISHED: set(),
    State.ABORTED: set(),
}


def check_transition(old: State, new: State) -> None:
    """Assert that a request in state `old` may go to `new`."""
    assert new in _NEXT[old], f"a request cannot go from {old.name} to {new.name}"


def last_state(reason: FinishReason) -> State:
    """The state in which a request with this reason ends."""
    return State.FINISHED if reason in ("stop", "length") else State.ABORTED
