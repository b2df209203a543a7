"""Plays the three lines pass by pass, and writes down who is computed when."""

from typing import Any

from practice.judgelib.cases import Case

Passes = list[list[str]]  # the names in each pass


def expected(case: Case) -> dict[str, Any]:
    rows, asked = case.ops["short_rows"]["rows"], case.ops["short_rows"]["requests"]
    static, joined = play_static(rows, asked), play(rows, asked)
    pages = case.ops["few_pages"]
    size = pages["page_size"]
    needs = {name: -(-(a + b - 1) // size) for name, (a, b) in pages["requests"].items()}
    tight = play(pages["rows"], pages["requests"], needs, pages["pages"])
    alike = case.ops["one_beginning"]
    whole = alike["common"] // alike["page_size"] * alike["page_size"]
    ahead, *behind = alike["requests"]
    late = play(alike["rows"], alike["requests"], after=dict.fromkeys(behind, ahead))
    return {
        "first_static": firsts(static, asked),
        "passes_static": len(static),
        "first_continuous": firsts(joined, asked),
        "passes_continuous": len(joined),
        "last_of_b": [last(static, "B"), last(joined, "B")],
        "alone_static": sum(len(names) == 1 for names in static),
        "first_pages": firsts(tight, pages["requests"]),
        "last_of_s": last(tight, "S"),
        "first_alike": firsts(late, alike["requests"]),
        "computed_alike": [
            length - (0 if name == ahead else whole)
            for name, (length, _) in alike["requests"].items()
        ],
    }


def firsts(passes: Passes, asked: dict[str, Any]) -> list[int]:
    return [1 + [name in names for names in passes].index(True) for name in asked]


def last(passes: Passes, name: str) -> int:
    return max(number for number, names in enumerate(passes, 1) if name in names)


def play_static(rows: int, asked: dict[str, list[int]]) -> Passes:
    passes, names = Passes(), [*asked]
    while names:
        batch, names = names[:rows], names[rows:]
        longest = max(asked[name][1] for name in batch)
        for number in range(longest):
            passes.append([name for name in batch if asked[name][1] > number])
    return passes


def play(
    rows: int,
    asked: dict[str, list[int]],
    needs: dict[str, int] | None = None,
    pages: int = 0,
    after: dict[str, str] | None = None,
) -> Passes:
    """Who waits joins when there is room; `after` says whose first pass must lie behind."""
    passes, waiting, left = Passes(), [*asked], dict[str, int]()
    while waiting or left:
        new: list[str] = []
        for name in [*waiting]:
            if after and after.get(name) in new:
                continue
            taken = sum(needs[one] for one in left) if needs else 0
            if len(left) == rows or (needs and taken + needs[name] > pages):
                break
            waiting.remove(name)
            new.append(name)
            left[name] = asked[name][1]
        passes.append(new or [*left])
        for name in passes[-1]:
            left[name] -= 1
        left = {name: count for name, count in left.items() if count}
    return passes
