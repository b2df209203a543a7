"""Counts pages, and knows prefixes as texts; there is no tree, no table and no lock here."""

import math
from dataclasses import dataclass, field
from typing import Any

from practice.judgelib.cases import Case

MAX_OVERTAKEN = 16
Prefix = tuple[int, ...]


@dataclass
class Asked:
    """One request: its tokens, how many of them have KV, and what it reads of the tree."""

    name: str
    number: int
    ids: list[int]
    output: int
    prompt: int
    computed: int = 0
    pages: int = 0
    shared: Prefix = ()
    is_new: bool = True  # no token has come since it was let in
    retractions: int = 0
    overtaken: int = 0
    tokens: list[int] = field(default_factory=list)


def next_token(ids: list[int]) -> int:
    return (sum((n + 1) * token for n, token in enumerate(ids)) + len(ids)) % 11


class Day:
    """Prefixes of whole pages, each with its last use."""

    def __init__(self, *shape: Any) -> None:
        self.num_pages, self.size, self.rows, _, self.budget, self.policy, self.share = shape
        self.uses = self.numbers = 0
        self.used: dict[Prefix, int] = {}
        self.waiting: dict[str, Asked] = {}
        self.running: dict[str, Asked] = {}
        self.aborted: set[str] = set()
        self.clear()

    def clear(self) -> None:
        self.gave_way: list[str] = []
        self.computed: dict[str, int] = {}
        self.tokens: dict[str, int] = {}
        self.ended: dict[str, str] = {}

    def add(self, name: str, ids: list[int], output: int) -> None:
        self.waiting[name] = Asked(name, self.numbers, list(ids), output, len(ids))
        self.numbers += 1

    def abort(self, name: str) -> None:
        self.aborted.add(name)

    # --- pages --------------------------------------------------------------------------------

    def whole(self, ids: Any) -> list[Prefix]:
        return [tuple(ids[:end]) for end in range(self.size, len(ids) + 1, self.size)]

    def use(self, prefixes: list[Prefix]) -> None:
        for prefix in reversed(prefixes):
            self.uses += 1
            self.used[prefix] = self.uses

    def held(self) -> set[Prefix]:
        return {page for one in self.running.values() for page in self.whole(one.shared)}

    def free(self) -> int:
        own = sum(one.pages - len(self.whole(one.shared)) for one in self.running.values())
        return self.num_pages - len(self.used) - own

    def make_room(self, count: int, known: list[Prefix]) -> bool:
        """Let `count` pages be free, if prefixes that nobody reads can be given up for them."""
        missing = count - self.free()
        held = self.held()
        unread = [page for page in self.used if page not in held and page not in known]
        if missing > len(unread):
            return False
        unread.sort(key=lambda page: self.used[page])
        for page in unread[: max(0, missing)]:
            del self.used[page]
        return True

    def keep(self, one: Asked) -> None:
        every = self.whole(one.ids[: one.computed])
        self.use(every)
        one.shared = every[-1] if every else ()

    def leave(self, one: Asked) -> None:
        self.keep(one)
        del self.running[one.name]
        held = self.held()
        self.use([page for page in self.whole(one.shared) if page not in held])
        one.pages, one.shared = 0, ()

    # --- a step -------------------------------------------------------------------------------

    def step(self) -> None:
        for one in [*self.waiting.values(), *self.running.values()]:
            if one.name in self.aborted:
                self.end(one, "abort")
        self.aborted = set()
        self.grow()
        decoding = [one for one in self.running.values() if not one.is_new]
        room = max(1, self.budget - len(decoding))
        batch = {one.name: len(one.ids) for one in decoding} | self.prompts(room)
        for name, end in batch.items():
            one = self.running[name]
            self.computed[name] = end - one.computed
            one.computed = end
        for one in [self.running[name] for name in batch]:
            if one.computed == len(one.ids):
                self.tokens[one.name] = next_token(one.ids)
                self.accept(one, self.tokens[one.name])

    def grow(self) -> None:
        for one in sorted(self.running.values(), key=lambda one: one.number):
            while one.name in self.running:
                count = -(-(one.computed + 1) // self.size) - one.pages
                if count <= 0 or self.make_room(count, []):
                    one.pages += max(0, count)
                    break
                self.retract(max(self.running.values(), key=lambda one: one.number))

    def retract(self, one: Asked) -> None:
        self.gave_way.append(one.name)
        self.share = (1 + self.share) / 2
        self.leave(one)
        one.retractions += 1
        one.is_new = True
        everybody = sorted([*self.waiting.values(), one], key=lambda one: one.number)
        self.waiting = {one.name: one for one in everybody}

    def prompts(self, room: int) -> dict[str, int]:
        """Whose prompts are computed, and up to where."""
        found: dict[str, int] = {}
        inside = [one for one in self.running.values() if one.is_new]
        line = self.in_order() if len(self.running) < self.rows else []
        for one in [*inside, *line]:
            if one.name in self.waiting and (len(self.running) == self.rows or not self.admit(one)):
                break
            found[one.name] = min(len(one.ids), one.computed + room)
            room -= found[one.name] - one.computed
            if room == 0:
                break
        return found

    def in_order(self) -> list[Asked]:
        line = [*self.waiting.values()]
        if self.policy == "lpm":
            line.sort(
                key=lambda one: (
                    one.overtaken < MAX_OVERTAKEN,
                    0 if one.overtaken >= MAX_OVERTAKEN else -self.num_known(one.ids),
                )
            )
        return line

    def num_known(self, ids: list[int]) -> int:
        return sum(page in self.used for page in self.whole(ids))

    def admit(self, one: Asked) -> bool:
        known = [page for page in self.whole(one.ids[:-1]) if page in self.used]
        self.use(known)
        expected = one.output if one.retractions else math.ceil(self.share * one.output)
        pages = -(-(one.prompt + expected - 1) // self.size)
        if not self.make_room(pages - len(known), known):
            held = self.held()
            self.use([page for page in known if page not in held])
            return False
        one.pages, one.shared = pages, known[-1] if known else ()
        one.computed, one.is_new = len(one.shared), True
        self.running[one.name] = self.waiting.pop(one.name)
        for other in self.waiting.values():
            other.overtaken += other.number < one.number
        return True

    def accept(self, one: Asked, token: int) -> None:
        one.ids.append(token)
        one.tokens.append(token)
        if len(one.tokens) == one.output:
            self.end(one, "length")
            self.share += (1.0 - self.share) / 16
        elif one.is_new:
            self.keep(one)
            one.is_new = False
            self.running[one.name] = self.running.pop(one.name)  # now among those who decode

    def end(self, one: Asked, reason: str) -> None:
        if one.name in self.running:
            self.leave(one)
        self.waiting.pop(one.name, None)
        self.ended[one.name] = reason


def expected(case: Case) -> list[Any]:
    state, results = Day(0, 1, 0, 0, 0, "fcfs", 1.0), []
    for name, *values in case.ops:
        if name == "engine":
            state = Day(*values)
        else:
            state.clear()
            getattr(state, name)(*values)
        results.append(
            {
                "gave_way": state.gave_way,
                "computed": state.computed,
                "tokens": state.tokens,
                "ended": state.ended,
                "waiting": [*state.waiting],
                "free": state.free(),
                "kept": len(state.used),
                "share": round(state.share, 4),
                "broken": [],
            }
        )
    return results
