"""Plays the trace page by page: each prefix of whole pages has its page and its last use."""

from typing import Any

from practice.judgelib.cases import Case

SIZE = 2


class Pages:
    """The kept prefixes; `ends` are those where a match or an insert ended."""

    def __init__(self) -> None:
        self.page: dict[tuple[int, ...], int] = {}
        self.used: dict[tuple[int, ...], int] = {}
        self.ends: set[tuple[int, ...]] = set()
        self.locked: set[tuple[int, ...]] = set()
        self.clock = 0

    def known(self, ids: list[int]) -> list[tuple[int, ...]]:
        every = [tuple(ids[:end]) for end in range(SIZE, len(ids) + 1, SIZE)]
        return [prefix for prefix in every if prefix in self.page]

    def match(self, ids: list[int]) -> int:
        known = self.known(ids)
        self.ends.update(known[-1:])
        for prefix in known[::-1]:
            self.clock += 1
            self.used[prefix] = self.clock
        return len(known) * SIZE

    def insert(self, ids: list[int], pages: list[int]) -> list[int]:
        known = self.match(ids) // SIZE
        for index in range(known, len(pages)):
            self.page[tuple(ids[: (index + 1) * SIZE])] = pages[index]
        self.match(ids)
        return [self.page[prefix] for prefix in self.known(ids)]

    def evict(self, count: int) -> list[int]:
        free = [prefix for prefix in self.page if prefix not in self.locked]
        free.sort(key=lambda prefix: self.used[prefix])
        return sorted(self.page.pop(prefix) for prefix in free[:count])

    def num_nodes(self) -> int:
        return len(self.ends & set(self.page))


def expected(case: Case) -> dict[str, Any]:
    state, results, nodes, room = Pages(), [], [], []
    for _, name, *values in case.ops:
        result: Any = None
        if name == "lock":
            state.match(values[0])
            state.locked.update(state.known(values[0]))
        elif name == "unlock":
            state.locked.clear()
            state.match(values[0])
        else:
            result = getattr(state, name)(*values)
        results.append(result)
        nodes.append(state.num_nodes())
        room.append((len(state.locked), len(state.page) - len(state.locked)))
    return {
        "cached_2": results[1],
        "pages_3": results[2],
        "nodes_3": nodes[2],
        "cached_4": results[3],
        "nodes_4": nodes[3],
        "room_6": room[5],
        "evicted_7": results[6],
        "cached_9": results[8],
        "evicted_10": results[9],
        "left": sorted(state.page.values()),
    }
