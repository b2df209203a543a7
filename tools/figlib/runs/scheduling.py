"""The recorder of chapter 10."""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))  # behind the tree of the step

from tools.figlib.runs.listening import Trace, listen, run_example


def ready() -> None:
    """The processes of the step need no setting up."""


def ch10_scheduler(_: None) -> Trace:
    """The passes of the example's runs: who was in each, and which of its tokens."""
    from minisgl.scheduler import trace

    runs: list[Any] = []

    def made(_: None, one: Any) -> None:
        runs.append(one)

    listen(trace.Trace, "__init__", made)
    names = run_example("ch10_scheduler")
    count = len(names["LENGTHS"])
    _, static, continuous, waiting, together = runs  # the first one fills the cache
    return {
        "static": _passes(static, count),
        "continuous": _passes(continuous, count),
        "they_wait": _passes(waiting, count),
        "they_do_not": _passes(together, count),
    }


def _passes(run: Any, count: int) -> list[Trace]:
    """Each pass of the first `count` requests, with their numbers: (KV before, and after)."""
    order: dict[int, int] = {}
    found: list[Trace] = []
    for event in run.events:
        if event["event"] == "add":
            if len(order) == count:  # the example goes on with others
                break
            order[event["uid"]] = len(order)
        elif event["event"] == "launch":
            batch = [[order[uid], *lengths] for uid, lengths in event["lengths"].items()]
            found.append({"phase": event["phase"], "batch": batch})
    return found
