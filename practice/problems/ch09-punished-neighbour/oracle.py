"""Counts in dicts, one request after the other, with fractions."""

from collections import Counter
from fractions import Fraction
from typing import Any

from practice.judgelib.cases import Case


def expected(case: Case) -> list[dict[str, Any]]:
    results = []
    for _, requests, scores in case.ops:
        order = [order_of(row, *one) for one, row in zip(requests, scores, strict=True)]
        greedy = all(params.get("temperature", 0) == 0 for _, params, *_ in requests)
        results.append({"order": order, "logits_kept": True, "all_greedy": greedy})
    return results


def order_of(
    row: list[float], _place: int, params: dict[str, float], prompt: list[int], generated: list[int]
) -> list[int]:
    factor = Fraction(params.get("repetition_penalty", 1))
    once = Fraction(params.get("presence_penalty", 0))
    each = Fraction(params.get("frequency_penalty", 0))
    known, counts = set(prompt + generated), Counter(generated)
    final = []
    for token, score in enumerate(map(Fraction, row)):
        if token in known:
            score = score / factor if score > 0 else score * factor
        if token in counts:
            score -= once + each * counts[token]
        final.append(score)
    return sorted(range(len(row)), key=lambda token: (-final[token], token))
