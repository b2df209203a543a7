"""Compares texts page by page, and counts pages and tokens; there is no tree and no lock here."""

from dataclasses import dataclass
from typing import Any

from practice.judgelib.cases import Case

ENOUGH = 32  # tokens that must not be computed twice
Prefix = tuple[int, ...]


@dataclass
class Running:
    """One request that was let in: its tokens, its pages, the prefix it reads, how far it is."""

    ids: list[int]
    num_pages: int
    shared: Prefix
    done: int


class Day:
    """Which prefixes of whole pages are kept, each with its last use, and who waits and runs."""

    def __init__(self, num_pages: int, size: int, rows: int, _longest: int) -> None:
        self.num_pages, self.size, self.rows, self.clock = num_pages, size, rows, 0
        self.used: dict[Prefix, int] = {}
        self.waiting: dict[str, tuple[list[int], int]] = {}
        self.running: dict[str, Running] = {}

    def pages(self, ids: Any) -> list[Prefix]:
        """The prefixes of `ids` in whole pages, each standing for its last page."""
        return [tuple(ids[:end]) for end in range(self.size, len(ids) + 1, self.size)]

    def use(self, prefixes: list[Prefix]) -> None:
        for prefix in reversed(prefixes):
            self.clock += 1
            self.used[prefix] = self.clock

    def held(self) -> set[Prefix]:
        return {page for one in self.running.values() for page in self.pages(one.shared)}

    def free(self) -> int:
        own = sum(one.num_pages - len(self.pages(one.shared)) for one in self.running.values())
        return self.num_pages - len(self.used) - own

    def add(self, name: str, runs: list[list[int]], output: int) -> None:
        ids = [first + index for first, count in runs for index in range(count)]
        self.waiting[name] = ids, output

    def step(self, left: int) -> list[list[Any]]:
        begun = [name for name, one in self.running.items() if one.done < len(one.ids)]
        result: list[list[Any]] = []
        for name in [*begun, *self.waiting]:
            if left == 0:
                break
            if name in self.waiting:
                others = (self.running[other].ids for other, _, _ in result)
                if max((self.twice(name, ids) for ids in others), default=0) >= ENOUGH:
                    continue
                if not self.admit(name):
                    break
            one = self.running[name]
            start, one.done = one.done, min(len(one.ids), one.done + left)
            left -= one.done - start
            result.append([name, start, one.done])
        for name, _, done in result:
            if done == len(self.running[name].ids):
                self.keep(self.running[name])
        return result

    def twice(self, name: str, other: list[int]) -> int:
        """How many tokens of a request would be computed by that other one as well."""
        theirs = {*self.pages(other)}
        common = [page for page in self.pages(self.waiting[name][0][:-1]) if page in theirs]
        return self.size * sum(page not in self.used for page in common)

    def admit(self, name: str) -> bool:
        ids, output = self.waiting[name]
        if len(self.running) == self.rows or not self.fits(name, ids, output):
            return False
        del self.waiting[name]
        return True

    def fits(self, name: str, ids: list[int], output: int) -> bool:
        known = [page for page in self.pages(ids[:-1]) if page in self.used]
        self.use(known)
        num_pages = -(-(len(ids) + output - 1) // self.size)
        missing = num_pages - len(known) - self.free()
        held = self.held()
        unread = [page for page in self.used if page not in held and page not in known]
        if missing > len(unread):
            self.use([page for page in known if page not in held])
            return False
        unread.sort(key=lambda page: self.used[page])
        for page in unread[: max(0, missing)]:
            del self.used[page]
        shared = known[-1] if known else ()
        self.running[name] = Running(ids, num_pages, shared, len(shared))
        return True

    def keep(self, one: Running) -> None:
        """What it has computed, in whole pages, is for others to read."""
        every = self.pages(one.ids[: one.done])
        self.use(every)
        one.shared = every[-1] if every else ()

    def end(self, name: str) -> str | None:
        if name not in self.running:
            return "not running"
        one = self.running.pop(name)
        held = self.held()
        self.use([page for page in self.pages(one.ids[: one.done]) if page not in held])
        return None


def expected(case: Case) -> list[Any]:
    state, results = Day(0, 1, 0, 0), []
    for name, *values in case.ops:
        result: Any = None
        if name == "engine":
            state = Day(*values)
        else:
            result = getattr(state, name)(*values)
        results.append(
            {
                "result": result,
                "waiting": [*state.waiting],
                "rows": state.rows - len(state.running),
                "free": state.free(),
                "kept": len(state.used),
                "broken": [],
            }
        )
    return results
