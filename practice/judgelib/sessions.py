"""One submission from the box to the record: what `submit`, `watch` and the web share."""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from practice.judgelib.catalogue import Problem
from practice.judgelib.core import Runs, judge
from practice.judgelib.store import HINT_AFTER, Progress
from practice.judgelib.text import COMMAND, JudgeError, Text
from practice.judgelib.verdict import Verdict
from tools.environment import NO_ENVIRONMENT
from tools.store import StoreError

if TYPE_CHECKING:
    from practice.judgelib.box import Box


def fresh_seed() -> int:
    """A seed that nobody can foresee, and that JavaScript can hold."""
    return secrets.randbits(48)


def box_with(torch: bool, level: int | None = None, strict: bool = False) -> Box:
    """A box with torch loaded ahead, or without it; JudgeError where torch is to be and is not."""
    if torch and find_spec("torch") is None:
        raise JudgeError(*NO_ENVIRONMENT)
    from practice.judgelib.box import Box

    return Box(level=level, strict=strict, torch=torch)


class TooSoon(JudgeError):
    """Another try at a prediction before its time."""


@contextlib.contextmanager
def entry(problem: Problem, progress: Progress) -> Iterator[None]:
    """Where a submission is recorded; raises TooSoon, StoreError.

    A prediction is a handful of values and every try says how many are right: who could try on and
    on would find them without a thought. So after some wrong ones each next has to wait longer.
    """
    if problem.kind != "predict":
        yield
        return
    with progress.store.exclusive():
        seconds = math.ceil(progress.wait(problem.id))
        if seconds:
            zh = f"答错了几次：先想一想，{seconds} 秒后再提交"
            en = f"wrong several times: think first, and submit again in {seconds} s"
            raise TooSoon(zh, en)
        yield


@contextlib.contextmanager
def box_for(
    problem: Problem, level: int | None = None, strict: bool = False
) -> Iterator[Box | None]:
    """A box that suits the problem; None for one that runs nothing."""
    if problem.kind == "predict":
        yield None
        return
    with box_with(problem.torch, level, strict) as box:
        yield box


def submit(
    problem: Problem, source: bytes, box: Runs | None, progress: Progress
) -> tuple[Verdict, list[Text]]:
    """Judge on a fresh seed and record it; the verdict, and what else the reader should know.

    Raises TooSoon where it must not be judged yet.

    A store that cannot be written never costs the reader the verdict.
    """
    seed = fresh_seed()
    try:
        with entry(problem, progress):
            id = progress.begin(problem.id, source, seed)
    except StoreError as error:
        return judge(problem, source, box=box, seed=seed), [Text(error.zh, error.en)]
    verdict, notes = conclude(problem, source, box, progress, id, seed)
    if not notes:
        with contextlib.suppress(StoreError):
            notes += _offers(problem, verdict, progress)
    return verdict, notes


def conclude(
    problem: Problem,
    source: bytes,
    box: Runs | None,
    progress: Progress | None,
    id: str,
    seed: int,
) -> tuple[Verdict, list[Text]]:
    """Judge a submission that is recorded under `id` (empty: it is not), and record the verdict."""
    verdict = judge(problem, source, box=box, seed=seed)
    if progress and id:
        try:
            progress.finish(id, verdict)
        except StoreError as error:
            return verdict, [Text(error.zh, error.en)]
    return verdict, []


def _offers(problem: Problem, verdict: Verdict, progress: Progress) -> list[Text]:
    offered = offer(problem, verdict, progress)
    if offered == "solution":
        command = f"{COMMAND} solution {problem.id}"
        return [Text(f"参考解答：{command}", f"the reference solution: {command}")]
    if offered == "hint":
        command = f"{COMMAND} hint {problem.id}"
        return [Text(f"需要提示吗？{command}", f"would a hint help? {command}")]
    return []


def offer(
    problem: Problem, verdict: Verdict, progress: Progress
) -> Literal["solution", "hint", ""]:
    """What a verdict opens or suggests to the reader; each front end words it in its own way."""
    if verdict.accepted:
        return "solution"
    standing = progress.standing(problem.id)
    if standing.failures >= HINT_AFTER and standing.hints < len(problem.hints):
        return "hint"
    return ""
