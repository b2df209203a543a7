"""`watch`: a verdict at every save, from a box that stays warm."""

from __future__ import annotations

import time
from pathlib import Path

from practice.judgelib import sessions, workspace
from practice.judgelib.catalogue import Problem
from practice.judgelib.core import Runs, judge
from practice.judgelib.store import Progress
from practice.judgelib.text import COMMAND, JudgeError
from practice.judgelib.verdict import render
from tools.lang import tr
from tools.store import StoreError

LOOK_SECONDS = 0.05

Stamp = tuple[int, int, int]


def watch(problem: Problem, level: int | None, strict: bool, turns: int | None = None) -> int:
    """Judge all cases whenever the file is saved, until Ctrl-C or an AC; only an AC is recorded.

    `turns`: stop after so many verdicts.
    """
    if problem.kind == "predict":
        raise JudgeError(
            f"预测题没有可以试的：想好了再提交：{COMMAND} submit {problem.id}",
            f"of a prediction there is nothing to try: think, then {COMMAND} submit {problem.id}",
        )
    path = workspace.file_of(problem)
    workspace.read(problem)  # says what to do when there is no file yet
    shown = workspace.shown(path)
    print(tr(f"正在看着 {shown}，Ctrl-C 结束", f"watching {shown}, Ctrl-C ends it"), flush=True)
    seen: Stamp | None = None
    with sessions.box_for(problem, level, strict) as box:
        while turns is None or turns > 0:
            stamp = _stamp(path)
            if stamp == seen:
                time.sleep(LOOK_SECONDS)
                continue
            seen = stamp
            if stamp is None:
                print(tr(f"{shown} 不见了", f"{shown} is gone") + " …", flush=True)
                continue
            if _turn(problem, path, box):
                return 0
            turns = None if turns is None else turns - 1
    return 1


def _stamp(path: Path) -> Stamp | None:
    """What changes with a save, also when an editor puts a new file in the place of the old."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _turn(problem: Problem, path: Path, box: Runs | None) -> bool:
    started = time.perf_counter()
    try:
        source = workspace.read(problem)
    except JudgeError as error:
        if path.exists():  # else it went between the look and the read: the next look says so
            print(error, flush=True)
        return False
    if not source.strip():
        return False  # some editors empty a file before they write it
    verdict = judge(problem, source, box=box, seed=sessions.fresh_seed())
    took = f"{time.perf_counter() - started:.2f} s"
    print(render(verdict, f"{problem.id}  {time.strftime('%H:%M:%S')}  ({took})"), flush=True)
    if verdict.accepted:
        _record(problem, source, box)
    return verdict.accepted


def _record(problem: Problem, source: bytes, box: Runs | None) -> None:
    """An AC is submitted like any other, on cases of its own."""
    try:
        with Progress() as progress:
            verdict, notes = sessions.submit(problem, source, box, progress)
    except StoreError as error:
        print(error)
        return
    if not verdict.accepted:
        print(render(verdict, problem.id))
    for note in notes:
        print(note)
