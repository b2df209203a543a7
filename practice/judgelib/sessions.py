"""One submission from the box to the record: what `submit`, `watch` and the web share."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

from practice.judgelib.catalogue import Problem
from practice.judgelib.core import Runs, judge
from practice.judgelib.store import HINT_AFTER, Progress
from practice.judgelib.text import Text
from practice.judgelib.verdict import Verdict
from tools.store import StoreError

if TYPE_CHECKING:
    from practice.judgelib.box import Box


def fresh_seed() -> int:
    """A seed that nobody can foresee, and that JavaScript can hold."""
    return secrets.randbits(48)


@contextlib.contextmanager
def box_for(
    problem: Problem, level: int | None = None, strict: bool = False
) -> Iterator[Box | None]:
    """A box that suits the problem; None for one that runs nothing."""
    if problem.kind == "predict":
        yield None
        return
    from practice.judgelib.box import Box

    with Box(level=level, strict=strict, torch=problem.torch) as box:
        yield box


def submit(
    problem: Problem, source: bytes, box: Runs | None, progress: Progress | None
) -> tuple[Verdict, list[Text]]:
    """Judge on a fresh seed and record it; the verdict, and what else the reader should know.

    A store that cannot be written never costs the reader the verdict.
    """
    seed = fresh_seed()
    notes: list[Text] = []
    id = ""
    if progress:
        try:
            id = progress.begin(problem.id, source, seed)
        except StoreError as error:
            notes.append(Text(str(error), str(error)))
    verdict = judge(problem, source, box=box, seed=seed)
    if progress and id:
        try:
            progress.finish(id, verdict)
            notes += _offers(problem, verdict, progress)
        except StoreError as error:
            notes.append(Text(str(error), str(error)))
    return verdict, notes


def _offers(problem: Problem, verdict: Verdict, progress: Progress) -> list[Text]:
    standing = progress.standing(problem.id)
    if verdict.accepted:
        command = f"python practice/judge.py solution {problem.id}"
        return [Text(f"参考解答：{command}", f"the reference solution: {command}")]
    if standing.failures >= HINT_AFTER and standing.hints < len(problem.hints):
        command = f"python practice/judge.py hint {problem.id}"
        return [Text(f"需要提示吗？{command}", f"would a hint help? {command}")]
    return []
