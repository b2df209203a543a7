"""Knows no tree: a flat table of prefixes, each of them whole, by how many pages they have."""

from typing import Any

from practice.judgelib.cases import Case

# Length -> the prefixes of that length, each as one text: a character is a token.
Known = dict[int, set[str]]


def prefixes(ids: list[int], size: int) -> list[str]:
    whole = "".join(map(chr, ids))
    return [whole[:length] for length in range(size, len(ids) + 1, size)]


def known_of(known: Known, every: list[str]) -> list[str]:
    return [prefix for prefix in every if prefix in known.get(len(prefix), ())]


def forget(known: Known, every: list[str], size: int) -> int:
    hit, gone = known_of(known, every), 0
    while hit and not any(
        longer.startswith(hit[-1]) for longer in known.get(len(hit[-1]) + size, ())
    ):
        known[len(hit[-1])].remove(hit[-1])
        hit.pop()
        gone += 1
    return gone


def expected(case: Case) -> list[Any]:
    known: Known = {}
    size, results = 1, []
    for name, value in case.ops:
        result = None
        if name == "new":
            known, size = {}, value
        else:
            every = prefixes(value, size)
            if name == "insert":
                result = len(every) - len(known_of(known, every))
                for prefix in every:
                    known.setdefault(len(prefix), set()).add(prefix)
            elif name == "match":
                result = size * len(known_of(known, every))
            else:
                result = forget(known, every, size)
        pages = sum(map(len, known.values()))
        results.append({"result": result, "pages": pages})
    return results
