"""Knows which texts have sound KV; a failed request simply leaves nothing behind."""

from dataclasses import dataclass, field
from typing import Any

from practice.judgelib.cases import Case

Prefix = tuple[int, ...]


@dataclass
class Asked:
    """One request: its tokens, how many have KV, and what it reads of the tree."""

    ids: list[int]
    output: int
    stop: list[int]
    timeout: float | None = None
    queue_timeout: float | None = None
    prompt: int = 0
    arrival: int | None = None
    computed: int = 0
    shared: Prefix = ()
    tokens: list[int] = field(default_factory=list)


class Day:
    """Prefixes of whole pages, each with its last use; pages are only counted."""

    def __init__(self, num_pages: int, size: int, rows: int, _longest: int) -> None:
        self.num_pages, self.size, self.rows = num_pages, size, rows
        self.clock = self.uses = 0
        self.used: dict[Prefix, int] = {}
        self.waiting: dict[str, Asked] = {}
        self.running: dict[str, Asked] = {}
        self.aborted: set[str] = set()
        self.clear()

    def clear(self) -> None:
        self.phase, self.computed = "idle", dict[str, int]()
        self.tokens: dict[str, int] = {}
        self.ended: dict[str, list[Any]] = {}

    def add(self, name: str, ids: list[int], output: int, *options: Any) -> None:
        more = {"stop": [], **dict(options)}
        self.waiting[name] = Asked(list(ids), output, prompt=len(ids), **more)

    def abort(self, name: str) -> None:
        self.aborted.add(name)

    def pages(self, ids: Any) -> list[Prefix]:
        return [tuple(ids[:end]) for end in range(self.size, len(ids) + 1, self.size)]

    def use(self, prefixes: list[Prefix]) -> None:
        for prefix in reversed(prefixes):
            self.uses += 1
            self.used[prefix] = self.uses

    def held(self) -> set[Prefix]:
        return {page for one in self.running.values() for page in self.pages(one.shared)}

    def need(self, one: Asked) -> int:
        return -(-(one.prompt + one.output - 1) // self.size)

    def free(self) -> int:
        own = sum(self.need(one) - len(self.pages(one.shared)) for one in self.running.values())
        return self.num_pages - len(self.used) - own

    def step(self, failure: str | None = None, names: Any = ()) -> None:
        now, self.clock = self.clock, self.clock + 1
        for name, one in [*self.waiting.items(), *self.running.items()]:
            one.arrival = now if one.arrival is None else one.arrival
            limits = [one.timeout] + [one.queue_timeout] * (name in self.waiting)
            late = any(limit is not None and now - one.arrival >= limit for limit in limits)
            if name in self.aborted or late:
                self.end(name, "abort" if name in self.aborted else "timeout")
        self.aborted = set()
        batch = self.admit() or [*self.running]
        if not batch:
            return
        lengths = {name: len(self.running[name].ids) for name in batch}
        self.computed = {name: lengths[name] - self.running[name].computed for name in batch}
        self.phase = "decode" if {*self.computed.values()} == {1} else "prefill"
        if failure in ("raises", "raises late"):
            for name in batch:
                self.end(name, "error")
            return
        self.tokens = {name: -1 if name in names else lengths[name] % 5 for name in batch}
        for name in batch:
            self.accept(name, self.tokens[name])

    def admit(self) -> list[str]:
        batch = []
        for name, one in [*self.waiting.items()]:
            if len(self.running) == self.rows or not self.fits(one):
                break
            self.running[name] = self.waiting.pop(name)
            batch.append(name)
        return batch

    def fits(self, one: Asked) -> bool:
        known = [page for page in self.pages(one.ids[:-1]) if page in self.used]
        self.use(known)
        missing = self.need(one) - len(known) - self.free()
        held = self.held()
        unread = [page for page in self.used if page not in held and page not in known]
        if missing > len(unread):
            self.use([page for page in known if page not in held])
            return False
        unread.sort(key=lambda page: self.used[page])
        for page in unread[: max(0, missing)]:
            del self.used[page]
        one.shared = known[-1] if known else ()
        one.computed = len(one.shared)
        return True

    def accept(self, name: str, token: int) -> None:
        one = self.running[name]
        first = one.computed < one.prompt
        one.computed = len(one.ids)
        if token < 0:
            self.end(name, "error")
            return
        one.ids.append(token)
        one.tokens.append(token)
        if token in one.stop:
            self.end(name, "stop")
        elif len(one.tokens) == one.output:
            self.end(name, "length")
        elif first:
            self.keep(one)

    def keep(self, one: Asked) -> None:
        every = self.pages(one.ids[: one.computed])
        self.use(every)
        one.shared = every[-1] if every else ()

    def end(self, name: str, reason: str) -> None:
        one = self.running.get(name) or self.waiting[name]
        if name in self.running and reason != "error":
            self.keep(one)
        self.waiting.pop(name, None)
        if self.running.pop(name, None):
            held = self.held()
            self.use([page for page in self.pages(one.shared) if page not in held])
        self.ended[name] = [reason, len(one.tokens)]


def expected(case: Case) -> list[Any]:
    state, results = Day(0, 1, 0, 0), []
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
                "ended": state.ended,
                "free": state.free(),
                "kept": len(state.used),
                "broken": [],
            }
        )
    return results
