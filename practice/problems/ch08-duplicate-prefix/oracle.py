"""Counts what must be free, kept and shared from the texts alone; no page has a number here."""

from dataclasses import dataclass
from typing import Any

from practice.judgelib.cases import Case

Prefix = tuple[int, ...]


@dataclass
class Running:
    """One request: all its tokens, how many are computed, and the prefix that it shares."""

    ids: list[int]
    places: int
    prompt: int
    shared: Prefix
    computed: int


class Counts:
    """Which prefixes of whole pages are kept, each with its last use, and who shares them."""

    def __init__(self, num_pages: int, size: int, _rows: int, _longest: int) -> None:
        self.num_pages, self.size, self.clock = num_pages, size, 0
        self.used: dict[Prefix, int] = {}
        self.running: dict[str, Running] = {}

    def prefixes(self, ids: list[int]) -> list[Prefix]:
        return [tuple(ids[:end]) for end in range(self.size, len(ids) + 1, self.size)]

    def use(self, prefixes: list[Prefix]) -> None:
        for prefix in reversed(prefixes):
            self.clock += 1
            self.used[prefix] = self.clock

    def held(self) -> set[Prefix]:
        return {
            prefix for req in self.running.values() for prefix in self.prefixes(list(req.shared))
        }

    def own(self) -> int:
        total = sum(-(-req.places // self.size) for req in self.running.values())
        return total - sum(len(req.shared) // self.size for req in self.running.values())

    def free(self) -> int:
        return self.num_pages - len(self.used) - self.own()

    def admit(self, name: str, ids: list[int], output: int) -> Any:
        known = [prefix for prefix in self.prefixes(ids[:-1]) if prefix in self.used]
        self.use(known)
        places = len(ids) + output - 1  # the last token is only ever an output
        need = -(-places // self.size) - len(known)
        evictable = [prefix for prefix in self.used if prefix not in {*self.held(), *known}]
        if need > self.free() + len(evictable):
            self.use([prefix for prefix in known if prefix not in self.held()])
            return "no room"
        evictable.sort(key=lambda prefix: self.used[prefix])
        for prefix in evictable[: max(0, need - self.free())]:
            del self.used[prefix]
        shared = known[-1] if known else ()
        self.running[name] = Running(list(ids), places, len(ids), shared, len(shared))
        return len(shared)

    def forward(self, names: list[str], tokens: list[int]) -> dict[str, list[int]]:
        seen = {name: list(self.running[name].ids) for name in names}
        for name, token in zip(names, tokens, strict=True):
            req = self.running[name]
            req.computed = len(req.ids)
            req.ids = [*req.ids, token]
            if req.computed == req.prompt:
                self.keep(req)
        return seen

    def keep(self, req: Running) -> None:
        every = self.prefixes(req.ids[: req.computed])
        self.use(every)
        req.shared = every[-1] if every else ()

    def finish(self, name: str) -> None:
        req = self.running[name]
        self.keep(req)
        del self.running[name]
        held = self.held()
        self.use([one for one in self.prefixes(list(req.shared)) if one not in held])

    def seen(self, result: Any) -> dict[str, Any]:
        return {
            "result": result,
            "free": self.free(),
            "kept": len(self.used),
            "evictable": len(self.used) - len(self.held()),
            "shared": {name: len(req.shared) for name, req in sorted(self.running.items())},
            "without one owner": [],
            "row is not handle": [],
        }


def expected(case: Case) -> list[Any]:
    state, results = Counts(0, 1, 0, 0), []
    for name, *values in case.ops:
        result: Any = None
        if name == "engine":
            state = Counts(*values)
        elif name == "admit":
            result = state.admit(*values)
        elif name == "forward":
            result = state.forward(*values)
        elif name == "in_place":
            result = True  # asked only where enough free pages follow the prefix
        else:
            state.finish(*values)
        results.append(state.seen(result))
    return results
