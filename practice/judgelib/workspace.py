"""The reader's files: `workspace/practice/ID.py`, one for each problem that was started."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from practice.judgelib import engine
from practice.judgelib.catalogue import Problem
from practice.judgelib.static import MAX_BYTES
from practice.judgelib.text import COMMAND, JudgeError, visible


def file_of(problem: Problem) -> Path:
    """Where the reader writes the problem."""
    return engine.root_of(problem) / "workspace" / "practice" / f"{problem.id}.py"


def start(problem: Problem, *, again: bool = False) -> Path:
    """Write the starter; JudgeError when the reader's file is there already, unless `again`.

    What is written over is kept beside it under another name.
    """
    path = file_of(problem)
    if path.exists() and not again:
        raise JudgeError(
            f"{shown(path)} 已经在了；要重新开始，加上 --again（旧文件会保留）",
            f"{shown(path)} is there already; --again starts over (the old file is kept)",
        )
    text = engine.starter(problem)
    with _one_line(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _keep(path)
        _write(path, text)
    return path


def read(problem: Problem, path: Path | None = None) -> bytes:
    """The bytes of a submission; JudgeError with what to do when there is no such file."""
    place = file_of(problem) if path is None else path
    if path is None and not place.exists():
        raise JudgeError(
            f"没有 {shown(place)}：先运行 {COMMAND} start {problem.id}",
            f"there is no {shown(place)}: run {COMMAND} start {problem.id} first",
        )
    if place.is_fifo() and place.resolve().is_fifo():  # not the shell's own, as in <(…)
        raise JudgeError(
            f"{shown(place)} 是命名管道，不是文件", f"{shown(place)} is a named pipe, not a file"
        )
    with _one_line(place), place.open("rb") as file:
        # A byte more than is allowed shows that the file is too large, however large it is.
        return file.read(MAX_BYTES + 1)


def shown(path: Path) -> str:
    """The path as short as it can be typed from here."""
    with contextlib.suppress(ValueError, OSError):  # also where this folder has been deleted
        path = path.resolve().relative_to(Path.cwd())
    return visible(str(path))


@contextlib.contextmanager
def _one_line(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise JudgeError(f"{shown(path)}：{why}", f"{shown(path)}: {why}") from None


def _keep(path: Path) -> None:
    """Put the reader's file under a name of its own: twice in one second keeps two files."""
    work, stamp = path.read_bytes(), time.strftime("%Y%m%d-%H%M%S")
    for number in itertools.count(1):
        with (
            contextlib.suppress(FileExistsError),
            path.with_suffix(f".{stamp}-{number}.py").open("xb") as kept,
        ):
            kept.write(work)
            return


def _write(path: Path, text: str) -> None:
    """All of it or nothing, also when the disk is full."""
    number, draft = tempfile.mkstemp(dir=path.parent, prefix=".draft-")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(draft, 0o644)
        os.rename(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
