"""Knows no tree: a flat set of prefixes, each of them whole, so every page is one tuple."""

from typing import Any

from practice.judgelib.cases import Case

Prefix = tuple[int, ...]


def prefixes(ids: list[int], size: int) -> list[Prefix]:
    return [tuple(ids[:length]) for length in range(size, len(ids) + 1, size)]


def leads_on(known: set[Prefix], prefix: Prefix) -> bool:
    """Whether a known text goes on after this prefix."""
    return any(len(one) > len(prefix) and one[: len(prefix)] == prefix for one in known)


def forget(known: set[Prefix], every: list[Prefix]) -> int:
    hit = [prefix for prefix in every if prefix in known]
    gone = 0
    while hit and not leads_on(known, hit[-1]):
        known.remove(hit.pop())
        gone += 1
    return gone


def expected(case: Case) -> list[Any]:
    known: set[Prefix] = set()
    size, results = 1, []
    for name, value in case.ops:
        result = None
        if name == "new":
            known, size = set(), value
        else:
            every = prefixes(value, size)
            if name == "insert":
                result = len(set(every) - known)
                known.update(every)
            elif name == "match":
                result = size * len(known.intersection(every))
            else:
                result = forget(known, every)
        results.append({"result": result, "pages": len(known)})
    return results
