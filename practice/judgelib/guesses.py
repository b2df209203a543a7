"""Cases that prove nothing: another seed's samples, and answers that a program could guess."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from practice.judgelib.cases import Case
from practice.judgelib.catalogue import Problem
from practice.judgelib.compare import compare
from practice.judgelib.core import load, payload_of, plan
from practice.judgelib.show import is_tensor


def case_faults(problem: Problem, first: int, second: int) -> Iterator[str]:
    """What is wrong with the cases of two seeds, one line each."""
    one, again, other = (_payloads(problem, seed) for seed in (first, first, second))
    if not compare(one, again).equal:
        yield "cases.py: the same seed gives other cases"
    if not compare(one["sample"], other["sample"]).equal:
        yield "cases.py: the samples change with the seed, the statement cannot"
    if problem.kind == "predict":
        return
    for planned in plan(problem, first):
        why = "" if planned.case.plain else _is_guessable(planned.case, planned.expected)
        if why:
            yield f"cases.py: {planned.group}: {planned.case.en!r} expects {why}"


def _payloads(problem: Problem, seed: int) -> dict[str, list[Any]]:
    drawn = load(problem, "cases.py").cases(random.Random(seed))
    return {group: [payload_of(problem, case) for case in drawn[group]] for group in drawn}


def _is_guessable(case: Case, expected: Any) -> str:
    given = [*case.args, *case.kwargs.values(), case.ops]
    if any(compare(expected, value).equal for value in given if value is not None):
        return "its own input"
    if is_tensor(expected):
        numbers = expected.flatten().tolist()
    else:
        numbers = list(expected) if type(expected) in (list, tuple) else [expected]
    if not numbers or all(type(x) in (int, float, bool) and not x for x in numbers):
        return "nothing but zero"
    if len(numbers) == 1 and numbers[0] in (None, ""):
        return "nothing"
    same = all(compare(numbers[0], number).equal for number in numbers)
    return "one value throughout" if same and len(numbers) > 1 else ""
