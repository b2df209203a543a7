"""Knows no nodes and no locks: of each prefix of whole pages, when it was used and who reads it."""

from dataclasses import dataclass
from typing import Any

from practice.judgelib.cases import Case

Prefix = tuple[int, ...]


@dataclass
class Running:
    """One request: its tokens, how many have KV, its places, and what it reads of the tree."""

    ids: list[int]
    computed: int
    places: int
    shared: Prefix


class Pool:
    """Which prefixes are kept, each with its last use; pages are only counted."""

    def __init__(self, num_pages: int, size: int, _rows: int, _longest: int) -> None:
        self.num_pages, self.size, self.clock = num_pages, size, 0
        self.used: dict[Prefix, int] = {}
        self.running: dict[str, Running] = {}

    def pages(self, ids: Any) -> list[Prefix]:
        """The prefixes of `ids` in whole pages, each standing for its last page."""
        return [tuple(ids[:end]) for end in range(self.size, len(ids) + 1, self.size)]

    def use(self, prefixes: list[Prefix]) -> None:
        for prefix in reversed(prefixes):
            self.clock += 1
            self.used[prefix] = self.clock

    def read(self) -> set[Prefix]:
        return {page for req in self.running.values() for page in self.pages(req.shared)}

    def free(self) -> int:
        own = sum(
            -(-req.places // self.size) - len(self.pages(req.shared))
            for req in self.running.values()
        )
        return self.num_pages - len(self.used) - own

    def begin(self, name: str, ids: list[int], output: int) -> Any:
        known = [page for page in self.pages(ids[:-1]) if page in self.used]
        self.use(known)
        places = len(ids) + output - 1
        missing = -(-places // self.size) - len(known) - self.free()
        unread = [page for page in self.used if page not in self.read() and page not in known]
        if missing > len(unread):
            self.use([page for page in known if page not in self.read()])
            return "no room"
        unread.sort(key=lambda page: self.used[page])
        for page in unread[: max(0, missing)]:
            del self.used[page]
        hit = len(known) * self.size
        req = self.running[name] = Running(list(ids), len(ids), places, ())
        self.keep(req)
        req.ids.append(0)
        return {"hit": hit, "reads": list(ids)}

    def keep(self, req: Running) -> None:
        every = self.pages(req.ids[: req.computed])
        self.use(every)
        req.shared = every[-1] if every else ()

    def decode(self, name: str, token: int) -> Any:
        if name not in self.running:
            return "not running"
        req = self.running[name]
        req.computed = len(req.ids)
        req.ids.append(token)
        return req.ids[:-1]

    def end(self, name: str) -> str | None:
        if name not in self.running:
            return "not running"
        req = self.running[name]
        self.keep(req)
        del self.running[name]
        self.use([page for page in self.pages(req.shared) if page not in self.read()])
        return None

    def in_place(self, _name: str) -> bool:
        return True  # asked only where enough free pages follow the prefix


def expected(case: Case) -> list[Any]:
    state, results = Pool(0, 1, 0, 0), []
    for name, *values in case.ops:
        result: Any = None
        if name == "engine":
            state = Pool(*values)
        else:
            result = getattr(state, name)(*values)
        results.append(
            {
                "result": result,
                "free": state.free(),
                "kept": len(state.used),
                "locked": len(state.read()),
                "without one owner": [],
            }
        )
    return results
