"""Knows no nodes: every prefix of whole pages has its own entry, with its own time of use."""

from dataclasses import dataclass
from typing import Any

from practice.judgelib.cases import Case

Prefix = tuple[int, ...]


@dataclass
class Entry:
    """The last page of one prefix."""

    page: int
    used: int
    end: bool = False  # whether a match or an insert ever ended here


class Prefixes:
    """All that is kept, page by page; the nodes are read off the ends and the branches."""

    def __init__(self, size: int) -> None:
        self.size, self.clock = size, 0
        self.kept: dict[Prefix, Entry] = {}
        self.found: dict[str, Prefix] = {}
        self.locked: dict[str, int] = {}

    def prefixes(self, ids: list[int]) -> list[Prefix]:
        lengths = range(self.size, len(ids) + 1, self.size)
        return [tuple(ids[:length]) for length in lengths]

    def use(self, prefixes: list[Prefix]) -> None:
        for prefix in reversed(prefixes):
            self.clock += 1
            self.kept[prefix].used = self.clock

    def match(self, ids: list[int]) -> list[Prefix]:
        known = [prefix for prefix in self.prefixes(ids) if prefix in self.kept]
        if known:
            self.kept[known[-1]].end = True
        self.use(known)
        return known

    def insert(self, ids: list[int], first: int) -> list[Any]:
        known, every = len(self.match(ids)), self.prefixes(ids)
        for index in range(known, len(every)):
            self.kept[every[index]] = Entry(first + index, 0)
        if known < len(every):
            self.kept[every[-1]].end = True
            self.use(every)
        return [len(every) * self.size, [self.kept[one].page for one in every]]

    def locks(self, prefix: Prefix) -> int:
        return sum(
            count for who, count in self.locked.items() if self.found[who][: len(prefix)] == prefix
        )

    def unlock(self, who: str) -> None:
        self.locked[who] -= 1
        now_free = [one for one in self.prefixes(list(self.found[who])) if not self.locks(one)]
        self.use(now_free)

    def evict(self, count: int) -> list[int]:
        free = [prefix for prefix in self.kept if not self.locks(prefix)]
        free.sort(key=lambda prefix: self.kept[prefix].used)
        self.found = {who: one for who, one in self.found.items() if self.locked.get(who)}
        self.locked = {who: count for who, count in self.locked.items() if count}
        return sorted(self.kept.pop(prefix).page for prefix in free[:count])

    def nodes(self) -> list[list[Any]]:
        below: dict[Prefix, list[Prefix]] = {}
        for prefix in sorted(self.kept):
            below.setdefault(prefix[: -self.size], []).append(prefix)
        found: list[list[Any]] = []

        def walk(start: Prefix, depth: int) -> None:
            for prefix in below.get(start, []):
                pages = [self.kept[prefix].page]
                while not self.kept[prefix].end and len(below.get(prefix, [])) == 1:
                    prefix = below[prefix][0]
                    pages.append(self.kept[prefix].page)
                tokens = list(prefix[len(start) :])
                found.append([depth, tokens, pages, self.locks(prefix)])
                walk(prefix, depth + 1)

        walk((), 1)
        return found

    def pages(self, prefix: Prefix) -> list[int]:
        return [self.kept[one].page for one in self.prefixes(list(prefix))]


def expected(case: Case) -> list[Any]:
    results: list[Any] = []
    state = Prefixes(1)
    for name, *values in case.ops:
        result: Any = None
        if name == "tree":
            state = Prefixes(values[0])
        elif name == "insert":
            result = state.insert(*values)
        elif name == "match":
            known = state.match(values[0])
            result = [len(known) * state.size, [state.kept[one].page for one in known]]
        elif name == "find":
            state.found[values[0]] = (state.match(values[1]) or [()])[-1]
        elif name == "lock":
            state.locked[values[0]] = state.locked.get(values[0], 0) + 1
        elif name == "unlock":
            state.unlock(values[0])
        elif name == "evict":
            result = state.evict(values[0])
        held = sum(1 for prefix in state.kept if state.locks(prefix))
        results.append(
            {
                "result": result,
                "nodes": state.nodes(),
                "handles": {who: state.pages(state.found[who]) for who in sorted(state.found)},
                "evictable, locked": [len(state.kept) - held, held],
                "broken": [],
            }
        )
    return results
