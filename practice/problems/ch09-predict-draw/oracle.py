"""Throws a ticket per 32nd into an urn, and plays every question with the tickets themselves."""

from fractions import Fraction
from typing import Any

from practice.judgelib.cases import Case

Tickets = list[int]  # a token per ticket


def expected(case: Case) -> dict[str, Any]:
    trace = case.ops
    shares = trace["probabilities_in_32nds"]
    urn = [token for token, count in enumerate(shares) for _ in range(count)]
    uniform = Fraction(trace["uniform"])
    nucleus = top_p(urn, Fraction(6, 10))
    return {
        "top_k_3": sorted({*top_k(urn, 3)}),
        "top_p_9_16": sorted({*top_p(urn, Fraction(9, 16))}),
        "top_p_06": sorted({*nucleus}),
        "top_k_2_top_p_055": sorted({*top_p(top_k(urn, 2), Fraction(55, 100))}),
        "min_p_02": sorted({*min_p(urn, Fraction(2, 10))}),
        "drawn_from_all": urn[int(uniform * len(urn))],
        "drawn_from_top_p_06": nucleus[int(uniform * len(nucleus))],
        "order": order(trace),
        "index": len(range(trace["prompt_len"], trace["prompt_len"] + trace["num_generated"])),
        "index_again": trace["num_generated"],
    }


def at_least(urn: Tickets, count: Fraction | int) -> Tickets:
    return [token for token in urn if urn.count(token) >= count]


def top_k(urn: Tickets, k: int) -> Tickets:
    counts = sorted((urn.count(token) for token in {*urn}), reverse=True)
    return at_least(urn, counts[k - 1])


def top_p(urn: Tickets, p: Fraction) -> Tickets:
    taken = 0
    for token in sorted({*urn}, key=lambda token: -urn.count(token)):
        taken += urn.count(token)
        if taken >= p * len(urn):
            return at_least(urn, urn.count(token))
    raise AssertionError("the whole urn is less than a share of it")


def min_p(urn: Tickets, p: Fraction) -> Tickets:
    return at_least(urn, p * max(map(urn.count, urn)))


def order(trace: dict[str, Any]) -> list[int]:
    scores = [Fraction(score) for score in trace["scores"]]
    factor = Fraction(trace["repetition_penalty"])
    for token in {*trace["prompt"], *trace["generated"]}:
        scores[token] *= 1 / factor if scores[token] > 0 else factor
    for token in {*trace["generated"]}:
        scores[token] -= Fraction(trace["presence_penalty"])
    for token in trace["generated"]:
        scores[token] -= Fraction(trace["frequency_penalty"])
    return sorted(range(len(scores)), key=lambda token: -scores[token])
