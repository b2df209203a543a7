"""What a worker does with one job: judge it in warm boxes, record it, word the result."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterable
from typing import Any

from practice.judgelib import sessions
from practice.judgelib.box import Box, JobResult, Limits, SandboxError
from practice.judgelib.core import try_samples
from practice.judgelib.text import Text
from practice.judgelib.verdict import Verdict
from practice.web.errors import ApiError
from practice.web.problems import Shelf
from practice.web.queue import Job
from practice.web.records import Records
from tools.store import StoreError

OFFERS = {
    "solution": Text("现在可以看参考解答了", "the reference solution is open now"),
    "hint": Text("需要提示吗？", "would a hint help?"),
}
GONE = Text("这道题已经不在了", "this problem is no longer here")


class Boxes:
    """One worker's warm boxes, one with torch and one without; a context manager."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._boxes: dict[bool, Box] = {}

    def __enter__(self) -> Boxes:
        return self

    def __exit__(self, *_: object) -> None:
        for box in self._boxes.values():
            box.close()

    def run(self, job: dict[str, Any], cases: Iterable[Any], limits: Limits) -> JobResult:
        """As `Box.run`; a box that cannot be had is an error of this job alone."""
        return self._box(bool(job["torch"])).run(job, cases, limits)

    def warm(self, torch: bool) -> None:
        """Load what the first job would wait for; a box that cannot be had is told by that job."""
        with contextlib.suppress(SandboxError):
            self._box(torch)
        if torch:
            with contextlib.suppress(ImportError):
                import torch as _  # noqa: F401

    def _box(self, torch: bool) -> Box:
        if torch not in self._boxes:
            self._boxes[torch] = Box(level=self._level, torch=torch)
        return self._boxes[torch]


def result_of(job: Job, shelf: Shelf, records: Records, boxes: Boxes) -> dict[str, Any]:
    """Judge the job and, if it is a row of the store, record the verdict; what the page gets."""
    try:
        verdict, notes = _verdict(job, shelf, records, boxes)
    except Exception as error:  # ours: the next job must not suffer from it
        traceback.print_exc(file=sys.stderr)
        what = f"{type(error).__name__}: {error}"
        verdict, notes = Verdict("IE", Text(what, what), seed=job.seed).legible(), []
    return shown(job.problem, job.kind, verdict.as_json(), [*job.notes, *notes])


def shown(problem: str, kind: str, verdict: dict[str, Any], notes: list[Text]) -> dict[str, Any]:
    """The data of the event `verdict`."""
    texts = [note._asdict() for note in notes]
    return {"problem": problem, "kind": kind, "verdict": verdict, "notes": texts}


def _verdict(job: Job, shelf: Shelf, records: Records, boxes: Boxes) -> tuple[Verdict, list[Text]]:
    progress = records.progress if job.recorded else None
    try:
        problem = shelf.find(job.problem)
    except ApiError:  # a row of a dead server, and the folder has gone since
        verdict = Verdict("SK", GONE, seed=job.seed)
        if progress:
            progress.finish(job.id, verdict)
        return verdict, []
    if job.kind == "run":
        return try_samples(problem, job.source, box=boxes, seed=job.seed), []
    verdict, notes = sessions.conclude(problem, job.source, boxes, progress, job.id, job.seed)
    if progress:
        with contextlib.suppress(StoreError):
            offered = sessions.offer(problem, verdict, progress)
            notes += [OFFERS[offered]] if offered else []
    return verdict, notes
