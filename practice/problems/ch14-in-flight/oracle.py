"""Counts pages, and knows prefixes as texts; a pass in flight is a list of who is in it."""

import math
from dataclasses import dataclass, field
from typing import Any

from practice.judgelib.cases import Case

ENDS = {0, 1}
Prefix = tuple[int, ...]


@dataclass
class Asked:
    """One request: its tokens, how many of them were launched, and what it reads of the tree."""

    name: str
    number: int
    ids: list[int]
    output: int
    prompt: int
    launched: int = 0  # tokens that have KV, or will have it
    pages: int = 0
    shared: Prefix = ()
    is_new: bool = True  # no token has come since it was let in
    has_given_way: bool = False
    reason: str | None = None
    tokens: list[int] = field(default_factory=list)

    @property
    def goes_on(self) -> bool:
        """Whether its last token is not on its way yet."""
        return self.launched + 1 < self.prompt + self.output


@dataclass
class Pass:
    """Who is in it, and who of them gets a token."""

    batch: list[Asked]
    sampled: list[Asked]


def next_token(ids: list[int]) -> int:
    text = 0
    for token in ids:
        text = (31 * text + token + 7) % 65521
    return text // 7 % 11


class Day:
    """Prefixes of whole pages, each with its last use."""

    def __init__(self, *shape: Any) -> None:
        self.num_pages, self.size, self.rows, _, self.budget, self.share, self.overlap = shape
        self.uses = self.numbers = 0
        self.used: dict[Prefix, int] = {}
        self.waiting: dict[str, Asked] = {}
        self.running: dict[str, Asked] = {}
        self.leaving: dict[str, Asked] = {}  # they have ended, and are still being computed
        self.flying: list[Pass] = []
        self.aborted: set[str] = set()
        self.fails = False
        self.clear()

    def clear(self) -> None:
        self.launched: list[Any] = []
        self.taken: list[Any] = []
        self.ended: dict[str, Asked] = {}

    def add(self, name: str, ids: list[int], output: int) -> None:
        self.waiting[name] = Asked(name, self.numbers, list(ids), output, len(ids))
        self.numbers += 1

    def abort(self, name: str) -> None:
        self.aborted.add(name)

    def fail(self) -> None:
        self.fails = True

    # --- pages --------------------------------------------------------------------------------

    def whole(self, ids: Any) -> list[Prefix]:
        return [tuple(ids[:end]) for end in range(self.size, len(ids) + 1, self.size)]

    def use(self, prefixes: list[Prefix]) -> None:
        for prefix in reversed(prefixes):
            self.uses += 1
            self.used[prefix] = self.uses

    def holders(self) -> list[Asked]:
        return [*self.running.values(), *self.leaving.values()]

    def held(self) -> set[Prefix]:
        return {page for one in self.holders() for page in self.whole(one.shared)}

    def free(self) -> int:
        own = sum(one.pages - len(self.whole(one.shared)) for one in self.holders())
        return self.num_pages - len(self.used) - own

    def free_rows(self) -> int:
        return self.rows - len(self.holders())

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
        every = self.whole(one.ids[: min(one.launched, len(one.ids) - 1)])
        self.use(every)
        one.shared = every[-1] if every else ()

    def let_go(self, one: Asked, failed: bool = False) -> None:
        if not failed and one.reason != "error":
            self.keep(one)
        self.running.pop(one.name, None)
        self.leaving.pop(one.name, None)
        held = self.held()
        self.use([page for page in self.whole(one.shared) if page not in held])
        one.pages, one.shared = 0, ()

    # --- a step -------------------------------------------------------------------------------

    def step(self) -> None:
        inside = sorted(self.running.values(), key=lambda one: not one.is_new)
        for one in [*self.waiting.values(), *inside]:
            if one.name in self.aborted:
                self.end(one, "abort")
        self.aborted = set()
        self.grow()
        decoding = [one for one in self.running.values() if not one.is_new and one.goes_on]
        room = max(1, self.budget - len(decoding))
        batch = {one.name: one.launched + 1 for one in decoding} | self.prompts(room)
        if batch:
            self.launch(batch)
        while len(self.flying) > (self.overlap and bool(batch)):
            self.take_over()

    def grow(self) -> None:
        for one in sorted(self.running.values(), key=lambda one: one.number):
            while one.name in self.running and one.goes_on:
                count = -(-(one.launched + 1) // self.size) - one.pages
                if count <= 0 or self.make_room(count, []):
                    one.pages += max(0, count)
                    break
                if self.flying:
                    self.take_over()
                else:
                    self.retract(max(self.running.values(), key=lambda one: one.number))

    def retract(self, one: Asked) -> None:
        self.share = (1 + self.share) / 2
        self.let_go(one)
        one.has_given_way = one.is_new = True
        everybody = sorted([*self.waiting.values(), one], key=lambda one: one.number)
        self.waiting = {one.name: one for one in everybody}

    def prompts(self, room: int) -> dict[str, int]:
        """Who else is computed, and up to where."""
        found: dict[str, int] = {}
        inside = [one for one in self.running.values() if one.is_new]
        for one in [*inside, *self.waiting.values()]:
            if one.name in self.waiting and not (self.free_rows() and self.admit(one)):
                break
            if one.launched >= len(one.ids) and not one.goes_on:
                continue
            found[one.name] = min(max(len(one.ids), one.launched + 1), one.launched + room)
            room -= found[one.name] - one.launched
            if room == 0:
                break
        return found

    def admit(self, one: Asked) -> bool:
        known = [page for page in self.whole(one.ids[:-1]) if page in self.used]
        self.use(known)
        expected = one.output if one.has_given_way else math.ceil(self.share * one.output)
        length = max(one.prompt + expected - 1, len(one.ids))
        pages = -(-length // self.size)
        if not self.make_room(pages - len(known), known):
            held = self.held()
            self.use([page for page in known if page not in held])
            return False
        one.pages, one.shared = pages, known[-1] if known else ()
        one.launched, one.is_new = len(one.shared), True
        self.running[one.name] = self.waiting.pop(one.name)
        return True

    def launch(self, batch: dict[str, int]) -> None:
        everybody = [self.running[name] for name in batch]
        sampled = [one for one in everybody if batch[one.name] >= len(one.ids)]
        single = all(batch[one.name] == one.launched + 1 for one in everybody)
        phase = "decode" if single and len(sampled) == len(everybody) else "prefill"
        self.launched.append(
            [phase, {one.name: [one.launched, batch[one.name]] for one in everybody}]
        )
        for one in everybody:
            one.launched = batch[one.name]
        self.flying.append(Pass(everybody, sampled))

    def take_over(self) -> None:
        first, failed = self.flying[0], self.fails
        if failed:
            self.fails = False
            self.taken.append("failure")
            for one in first.batch:
                self.end(one, "error")
        else:
            tokens = {one.name: next_token(one.ids) for one in first.sampled}
            self.taken.append({one.name: (one, tokens[one.name]) for one in first.sampled})
            for one in first.sampled:
                if one.reason is None:
                    self.accept(one, tokens[one.name])
        del self.flying[0]
        for one in first.batch:
            if one.reason is not None and not self.is_flying(one):
                self.let_go(one, failed)

    def is_flying(self, one: Asked) -> bool:
        return any(one in other.batch for other in self.flying)

    def accept(self, one: Asked, token: int) -> None:
        one.ids.append(token)
        one.tokens.append(token)
        if token in ENDS or len(one.tokens) == one.output:
            self.end(one, "stop" if token in ENDS else "length")
            self.share += (len(one.tokens) / one.output - self.share) / 16
        elif one.is_new:
            self.keep(one)
            one.is_new = False
            self.running[one.name] = self.running.pop(one.name)  # now among those who decode

    def end(self, one: Asked, reason: str) -> None:
        if one.reason is not None:
            return
        one.reason = reason
        self.ended[one.name] = one
        self.waiting.pop(one.name, None)
        if self.running.pop(one.name, None):
            self.leaving[one.name] = one
            if not self.is_flying(one):
                self.let_go(one)

    def seen(self, taken: Any) -> Any:
        if taken == "failure":
            return taken
        return {
            name: None if one.reason == "error" else token for name, (one, token) in taken.items()
        }


def expected(case: Case) -> list[Any]:
    state, results = Day(0, 1, 0, 0, 0, 1.0, False), []
    for name, *values in case.ops:
        if name == "engine":
            state = Day(*values)
        else:
            state.clear()
            getattr(state, name)(*values)
        results.append(
            {
                "launched": state.launched,
                "taken": [state.seen(taken) for taken in state.taken],
                "ended": {name: [one.reason, [*one.tokens]] for name, one in state.ended.items()},
                "free_rows": state.free_rows(),
                "free": state.free(),
                "kept": len(state.used),
                "in_flight": len(state.flying),
                "broken": [],
            }
        )
    return results
