"""What the scheduler did and when, for people to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any


class Trace:
    """The events of a scheduler whose `trace` it is: dicts with `time` (in seconds) and `event`.

    | event | its data |
    |---|---|
    | add | `uid`, `num_tokens` of the prompt |
    | launch | `phase`, `lengths`: uid to (cached_len, device_len) |
    | result | `tokens`: uid to token |
    | finish | `uid`, `reason` |
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def add(self, event: str, **data: Any) -> None:
        """Record an event that happens now."""
        self.events.append({"time": perf_counter(), "event": event, **data})

    def write(self, path: str | Path) -> None:
        """Write the events as JSON, one a line."""
        Path(path).write_text("".join(f"{json.dumps(event)}\n" for event in self.events), "utf-8")

    def write_chrome(self, path: str | Path) -> None:
        """Write a timeline that chrome://tracing and ui.perfetto.dev show.

        The first row has the passes, then comes a row per request with its states.
        """
        Path(path).write_text(json.dumps({"traceEvents": [*self._spans()]}), "utf-8")

    def _spans(self) -> Iterator[dict[str, Any]]:
        doing: dict[int, tuple[str, float]] = {}  # uid -> a state, and since when
        launch: dict[str, Any] = {}
        for event in self.events:
            now, kind = event["time"], event["event"]
            if kind == "add":
                doing[event["uid"]] = "waiting", now
            elif kind == "launch":
                launch = event
                for uid in launch["lengths"]:
                    if doing.setdefault(uid, (event["phase"], now))[0] == "waiting":
                        yield _span(1 + uid, *doing[uid], now, {})
                        doing[uid] = "prefill", now
            elif kind == "result":
                yield _span(0, launch["phase"], launch["time"], now, launch["lengths"])
                for uid in event["tokens"]:
                    if doing[uid][0] == "prefill":
                        yield _span(1 + uid, *doing[uid], now, {})
                        doing[uid] = "decode", now
            elif event["uid"] in doing:
                yield _span(1 + event["uid"], *doing.pop(event["uid"]), now, event)


def _span(row: int, name: str, since: float, until: float, args: dict[str, Any]) -> dict[str, Any]:
    microseconds = {"ts": 1e6 * since, "dur": 1e6 * (until - since)}
    return {"ph": "X", "pid": 0, "tid": row, "name": name, "args": args, **microseconds}
