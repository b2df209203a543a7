"""Answers and sources that are meant for the judge's own side: its time, its memory, its lines."""

import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from practice.judgelib import compare, show
from practice.judgelib.box import Box
from practice.judgelib.catalogue import load_problem
from practice.judgelib.core import judge
from practice.judgelib.text import visible
from practice.judgelib.verdict import render

PROBLEM = load_problem(Path(__file__).resolve().parents[2] / "practice/problems/ch02-attention")
JUDGE_SECONDS = 2.0  # of the judge's own processor time
JUDGE_MB = 160
SHOWN = 12_000

ANSWERS = {
    "a_tensor_as_large_as_may_be": "return torch.zeros(4 << 20)",
    "bools_as_many_as_may_be": "return torch.zeros(16 << 20, dtype=torch.bool)",
    "a_deep_tensor": "return torch.zeros(*[2] * 16)",
    "no_elements_and_huge": "return torch.zeros((1 << 31) - 1, 0)",
    "many_dicts": "return [{} for _ in range(20_000)]",
    "many_keys": "return {f'{n:020}': n for n in range(9_000)}",
    "a_huge_key": "return {'x' * 1_500_000: 1}",
    "a_huge_text": "return 'x' * 1_500_000",
    "a_list_in_a_list": "a = []; a.append(a); return a",
    "a_huge_name": "raise type('A' * 3_000_000, (Exception,), {})('x')",
    "a_message_of_lines": "raise ValueError('\\n' * 1_000_000)",
}
SOURCES = {
    "chains_of_attributes": "\n".join("a" + ".b" * 900 for _ in range(140)),
    "minus_minus": "x = " + "-" * 200_000 + "1",
    "not_not": "x = " + "not " * 50_000 + "1",
    "brackets": "x = " + "(" * 100_000,
    "a_sum": "x = " + "1+" * 120_000 + "1",
    "calls": "x = f" + "()" * 120_000,
    "lambdas": "x = " + "lambda:" * 30_000 + "0",
    "elifs": "if 1: pass\n" + "elif 1: pass\n" * 18_000,
    "a_long_line": "x = '" + "a" * 250_000 + "'",
    "a_long_name": "x" * 250_000,
    "digits": "x = " + "9" * 200_000,
    "nested_f_texts": "x = " + "f'{" * 1_000,
    "cookie": "# -*- coding: utf-7 -*-\nx = '+AGE-'",
    "form_feeds": "\f\n\x0b" * 50_000,
    "many_dicts": "x = " + "{**" * 150 + "{}" + "}" * 150,
    "marks": "x = '\ufeff\u202e'\ny = \ufeff",
}


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with Box() as one:
        judge(PROBLEM, PROBLEM.read("solution.py"), box=one, seed=1)
        yield one


def holds(box: Box, text: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(2):  # a busy machine only ever adds time
        started = time.process_time()
        verdict = judge(PROBLEM, text, box=box, seed=1)
        shown = render(verdict, "x")
        took = time.process_time() - started
        if took <= JUDGE_SECONDS:
            break
    assert not verdict.accepted and verdict.code not in ("IE", "SK"), verdict
    assert took <= JUDGE_SECONDS
    assert len(shown) <= SHOWN and visible(shown) == shown
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown / 1024 <= JUDGE_MB
    assert judge(PROBLEM, PROBLEM.read("solution.py"), box=box, seed=2).accepted


@pytest.mark.parametrize("name", ANSWERS)
def test_a_hostile_answer_costs_the_judge_little(box: Box, name: str) -> None:
    holds(box, f"import torch\ndef attention(q, k, v):\n    {ANSWERS[name]}\n")


@pytest.mark.parametrize("name", SOURCES)
def test_a_hostile_source_costs_the_judge_little(box: Box, name: str) -> None:
    holds(box, f"{SOURCES[name]}\ndef attention(q, k, v):\n    pass\n")


def test_changing_the_inputs_is_an_error_however_right_the_answer(box: Box) -> None:
    good = PROBLEM.read("solution.py").replace("def attention(", "def right(")
    for change in ("q.mul_(1.5)", "k.resize_(0)", "v.data.zero_()"):
        text = f"{good}\ndef attention(q, k, v):\n    out = right(q, k, v)\n    {change}\n"
        verdict = judge(PROBLEM, f"{text}    return out\n", box=box, seed=3)
        assert verdict.code == "RE" and "InputChanged" in verdict.message.en


def test_a_form_feed_ends_no_line(box: Box) -> None:
    text = "x = 1\f\ny = '\x0b\x1c'\ndef attention(q, k, v):\n    return 1 / 0  # here\n"
    verdict = judge(PROBLEM, text, box=box, seed=1)
    assert "line 4" in verdict.traceback and "# here" in verdict.traceback


def test_huge_keys_are_named_briefly() -> None:
    found = compare.compare({"a": 1}, {"a": 1, "x" * 1_000_000: 2})
    assert found.difference and len(found.difference.reason.en) < 300
    assert len(show.shape({f"{n:01000}": n for n in range(1000)})) < 2000
    assert show.whole({"a": (1,), "b": [(), {}]}) == "{'a': (1,), 'b': [(), {}]}"
