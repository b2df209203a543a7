"""The samples of a statement: made from the sample cases and the oracle, never typed.

A statement has `<!-- samples -->` and `<!-- /samples -->`; what stands between is generated
(`judge.py audit ID --write`), and the audit fails when it is not what the code gives.
"""

from __future__ import annotations

import re

from practice.judgelib import show
from practice.judgelib.catalogue import Problem
from practice.judgelib.classify import input_text
from practice.judgelib.core import Planned, plan
from practice.judgelib.text import Text

BLOCK = re.compile(r"(<!-- samples -->\n).*?(<!-- /samples -->)", re.DOTALL)


def sample_block(problem: Problem) -> Text:
    """The text between the marks, in both languages."""
    planned = plan(problem, 0, ["sample"])
    return Text(*(_block(problem, planned, language) for language in ("zh", "en")))


def _block(problem: Problem, planned: list[Planned], language: str) -> str:
    parts = []
    for one in planned:
        label = one.case.zh if language == "zh" else one.case.en
        parts.append(f"# {label}\n{_sample(problem, one)}")
    return "```text\n" + "\n\n".join(parts) + "\n```\n"


def _sample(problem: Problem, one: Planned) -> str:
    ops, expected = one.case.ops, one.expected
    if problem.kind == "predict":
        return show.whole(ops)
    if type(ops) is list and type(expected) is list and len(ops) == len(expected):
        return "\n".join(
            f"{show.whole(op)}\n    → {_indented(result)}"
            for op, result in zip(ops, expected, strict=True)
        )
    return f"{input_text(problem, one, True)}\n→ {show.whole(expected)}"


def _indented(result: object) -> str:
    return show.whole(result).replace("\n", "\n      ")


def with_samples(statement: str, block: str) -> str:
    """The statement with this block between its marks; unchanged when it has no marks."""
    return BLOCK.sub(lambda found: found[1] + block + found[2], statement)


def without_marks(statement: str) -> str:
    """The statement as it is read: what the marks stand around stays."""
    return re.sub(r"<!-- /?samples -->\n?", "", statement)


def write_samples(problem: Problem) -> list[str]:
    """Bring both statements up to date; return the names of the files that changed."""
    changed = []
    for language, text, block in zip(
        ("zh", "en"), problem.statement(), sample_block(problem), strict=True
    ):
        new = with_samples(text, block)
        if new != text:
            name = f"statement.{language}.md"
            (problem.folder / name).write_text(new, "utf-8")
            changed.append(name)
    return changed
