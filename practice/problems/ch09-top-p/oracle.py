"""Exact: probabilities as whole numbers of a tiny unit, equal ones taken together."""

from collections import Counter
from fractions import Fraction
from typing import Any

import torch

from practice.judgelib.cases import Case

UNIT = 2.0**-40


def expected(case: Case) -> list[dict[str, Any]]:
    results = []
    for name, probs, top_p, listed in case.ops:
        rows = probs.tolist()
        found = [threshold_of(row, p) for row, p in zip(rows, top_p, strict=True)]
        stay = [
            [token for token, prob in enumerate(row) if prob >= least]
            for row, least in zip(rows, found, strict=True)
        ]
        result: dict[str, Any] = {
            "threshold": torch.tensor(found, dtype=torch.float32)[:, None],
            "kept": stay if listed else [len(row) for row in stay],
            "inputs_kept": True,
        }
        if name == "watched":
            result["sorts_too_much"] = False
        results.append(result)
    return results


def threshold_of(row: list[float], top_p: float) -> float:
    if top_p == 1:
        return 0.0
    units = Counter(int(prob / UNIT) for prob in row)
    assert sum(unit * count for unit, count in units.items()) * UNIT == sum(row)
    p = Fraction(top_p)
    wanted = p.numerator * sum(unit * count for unit, count in units.items())
    reached = 0
    for unit in sorted(units, reverse=True):
        reached += unit * units[unit]
        if reached * p.denominator >= wanted:
            return unit * UNIT
    raise AssertionError("the whole row is less than a share of it")
