"""Counts tokens, and knows each answer from its text alone; nothing is computed in pieces here."""

import zlib
from dataclasses import dataclass, field
from typing import Any

from practice.judgelib.cases import Case

Prefix = tuple[int, ...]


@dataclass
class Asked:
    """One request: its text, how much of it has been computed, and what it reads of the tree."""

    ids: list[int]
    output: int
    timeout: float | None = None
    queue_timeout: float | None = None
    prompt: int = 0
    arrival: int | None = None
    computed: int = 0
    shared: int = 0
    tokens: list[int] = field(default_factory=list)


class Day:
    """There are pages for all, so nothing is ever evicted: a kept prefix stays."""

    def __init__(self, num_pages: int, size: int, rows: int, _longest: int, budget: int) -> None:
        self.num_pages, self.size, self.rows, self.budget = num_pages, size, rows, budget
        self.clock = 0
        self.kept: set[Prefix] = set()
        self.waiting: dict[str, Asked] = {}
        self.running: dict[str, Asked] = {}  # those who decode first, in their order
        self.aborted: set[str] = set()
        self.clear()

    def clear(self) -> None:
        self.phase, self.computed = "idle", dict[str, list[int]]()
        self.tokens: dict[str, int] = {}
        self.ended: dict[str, list[Any]] = {}

    def add(self, name: str, ids: list[int], output: int, *options: Any) -> None:
        more = {key: value for key, value in options if key != "logprobs"}
        self.waiting[name] = Asked(list(ids), output, prompt=len(ids), **more)

    def abort(self, name: str) -> None:
        self.aborted.add(name)

    def pages(self, ids: list[int]) -> list[Prefix]:
        return [tuple(ids[:end]) for end in range(self.size, len(ids) + 1, self.size)]

    def free(self) -> int:
        own = 0
        for one in self.running.values():
            own += -(-(one.prompt + one.output - 1) // self.size) - one.shared // self.size
        return self.num_pages - len(self.kept) - own

    def step(self, failing: bool = False) -> None:
        now, self.clock = self.clock, self.clock + 1
        for name, one in [*self.waiting.items(), *self.running.items()]:
            one.arrival = now if one.arrival is None else one.arrival
            limits = [one.timeout] + [one.queue_timeout] * (name in self.waiting)
            late = any(limit is not None and now - one.arrival >= limit for limit in limits)
            if name in self.aborted or late:
                self.end(name, "abort" if name in self.aborted else "timeout")
        self.aborted = set()
        decoding = [name for name, one in self.running.items() if one.tokens]
        for name in decoding:
            self.computed[name] = [self.running[name].computed, len(self.running[name].ids)]
        self.hand_out(max(1, self.budget - len(decoding)))
        if not self.computed:
            return
        gets = [n for n, (_, end) in self.computed.items() if end == len(self.running[n].ids)]
        one_each = all(end - start == 1 for start, end in self.computed.values())
        self.phase = "decode" if one_each and len(gets) == len(self.computed) else "prefill"
        if failing:
            for name in self.computed:
                self.end(name, "error")
            return
        for name, (_, end) in self.computed.items():
            self.running[name].computed = end
        for name in gets:
            self.accept(name)

    def hand_out(self, left: int) -> None:
        begun = [name for name, one in self.running.items() if not one.tokens]
        for name in [*begun, *self.waiting]:
            if not left or (name in self.waiting and len(self.running) == self.rows):
                break
            if name in self.waiting:
                one = self.running[name] = self.waiting.pop(name)
                known = [page for page in self.pages(one.ids[:-1]) if page in self.kept]
                one.shared = one.computed = len(known) * self.size
            one = self.running[name]
            end = min(one.prompt, one.computed + left)
            self.computed[name] = [one.computed, end]
            left -= end - one.computed

    def accept(self, name: str) -> None:
        one = self.running[name]
        token = zlib.crc32(repr(one.ids).encode()) % 50
        self.tokens[name] = token
        first = not one.tokens
        one.ids.append(token)
        one.tokens.append(token)
        if len(one.tokens) == one.output:
            self.end(name, "length")
        elif first:
            self.keep(one)
            self.running[name] = self.running.pop(name)  # behind those who decode already

    def keep(self, one: Asked) -> None:
        every = self.pages(one.ids[: one.computed])
        self.kept.update(every)
        one.shared = len(every) * self.size

    def end(self, name: str, reason: str) -> None:
        one = self.running.get(name) or self.waiting[name]
        if name in self.running and reason != "error":
            self.keep(one)
        self.waiting.pop(name, None)
        self.running.pop(name, None)
        self.ended[name] = [reason, one.tokens]


def expected(case: Case) -> list[Any]:
    state, results = Day(0, 1, 0, 0, 1), []
    for name, *values in case.ops:
        if name == "engine":
            state = Day(*values)
        else:
            state.clear()
            getattr(state, name)(*values)
        results.append(
            {
                state.phase: state.computed,
                "tokens": state.tokens,
                "ended": {name: [*told] for name, told in state.ended.items()},
                "free": state.free(),
                "kept": len(state.kept),
                "broken": [],
            }
        )
    return results
