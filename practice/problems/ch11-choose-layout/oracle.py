"""Compares in fractions, and finds the layout of a number of rows by looking for its border."""

from fractions import Fraction
from typing import Any

from practice.judgelib.cases import Case

COUNTS = (1, 4, 16, 64, 256)


def expected(case: Case) -> list[dict[str, Any]]:
    return [chosen(*values) if name == "choose" else applied(*values) for name, *values in case.ops]


def chosen(times: dict[str, list[float]]) -> dict[str, Any]:
    plain = [Fraction(figure) for figure in times["plain"]]
    best, most = "plain", Fraction(0)
    for name, figures in times.items():
        saved = Fraction(0)
        for figure, first in zip(figures, plain, strict=True):
            if figure < first:
                saved += 1 - Fraction(figure) / first
        if saved > most:
            best, most = name, saved
    faster = [figure < first for figure, first in zip(times[best], plain, strict=True)]
    worst = max(Fraction(figure) / first for figure, first in zip(times[best], plain, strict=True))
    everywhere = best != "plain" and worst <= Fraction(1.05)
    return {
        "second": best,
        "uses_second": [True] * len(COUNTS) if everywhere else faster,
        "measured": [True],
    }


def applied(second: str, flags: list[bool], counts: list[int], _bias: Any) -> dict[str, Any]:
    products = []
    for rows in counts:
        place = 0
        while place < len(COUNTS) - 1 and COUNTS[place] < rows:
            place += 1
        products.append(f"{second if flags[place] else 'plain'} {rows}")
    return {"products": products, "prepared": [True] * any(flags), "later": 0}
