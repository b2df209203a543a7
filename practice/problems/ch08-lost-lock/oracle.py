"""Every prefix of whole pages by itself; a lock is never counted, it is looked up."""

from typing import Any

from practice.judgelib.cases import Case

Prefix = tuple[int, ...]


class Kept:
    """Which page ends each prefix, when it was last used, and who is reading."""

    def __init__(self, size: int) -> None:
        self.size, self.clock = size, 0
        self.page: dict[Prefix, int] = {}
        self.used: dict[Prefix, int] = {}
        self.reading: dict[str, Prefix] = {}

    def prefixes(self, ids: Any) -> list[Prefix]:
        return [tuple(ids[:end]) for end in range(self.size, len(ids) + 1, self.size)]

    def is_read(self, prefix: Prefix) -> bool:
        return any(text[: len(prefix)] == prefix for text in self.reading.values())

    def use(self, prefixes: list[Prefix]) -> None:
        for prefix in prefixes[::-1]:
            self.clock += 1
            self.used[prefix] = self.clock

    def known(self, ids: list[int]) -> list[Prefix]:
        return [prefix for prefix in self.prefixes(ids) if prefix in self.page]

    def do(self, name: str, values: list[Any]) -> Any:
        if name == "keep":
            ids, first = values
            known = len(self.known(ids))
            for index, prefix in enumerate(self.prefixes(ids)):
                self.page.setdefault(prefix, first + index)
            self.use(self.prefixes(ids))
            return known
        if name == "begin":
            who, ids = values
            known = self.known(ids)
            self.use(known)
            self.reading[who] = known[-1] if known else ()
            return len(known) * self.size
        if name == "end":
            if values[0] not in self.reading:
                return "AssertionError"
            every = self.prefixes(self.reading.pop(values[0]))
            self.use([prefix for prefix in every if not self.is_read(prefix)])
        if name == "evict":
            free = [prefix for prefix in self.page if not self.is_read(prefix)]
            free.sort(key=lambda prefix: self.used[prefix])
            return sorted(self.page.pop(prefix) for prefix in free[: values[0]])
        if name == "room":
            read = sum(1 for prefix in self.page if self.is_read(prefix))
            return [len(self.page) - read, read]
        return None


def expected(case: Case) -> list[Any]:
    state, results = Kept(1), []
    for name, *values in case.ops:
        if name == "tree":
            state = Kept(values[0])
        result = state.do(name, values)
        results.append(
            {
                "result": result,
                "kept": sorted(state.page.values()),
                "read": {
                    who: [state.page[one] for one in state.prefixes(state.reading[who])]
                    for who in sorted(state.reading)
                },
            }
        )
    return results
