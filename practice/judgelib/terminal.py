"""What all commands share of the terminal: odd encodings, a full disk, lines of complaint."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

from practice.judgelib.store import NoStore, Progress
from practice.judgelib.text import visible
from tools.lang import tr
from tools.store import StoreError


def speak_any_encoding() -> None:
    """A terminal that lacks a character gets its escape: it must not cost the verdict."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_up_stdout() -> None:
    """What could not be written now cannot be written when Python ends either."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(line: str) -> int:
    """Say what is wrong; the exit status that goes with it."""
    print(f"judge.py: {visible(line)}", file=sys.stderr)
    return 2


@contextlib.contextmanager
def open_progress() -> Iterator[Progress]:
    """The record, with what happened to it told; an empty one where it cannot be opened."""
    try:
        progress = Progress()
    except StoreError as error:
        blind = tr("；下面的内容不知道你的进度", "; what follows knows nothing of your progress")
        complain(f"{error}{blind}")
        progress = Progress(NoStore())
    with progress:
        if progress.store.notice:
            complain(progress.store.notice)
        for row in progress.interrupted():
            zh = f"上次对 {row['problem']} 的提交在判题时中断了；代码已保存，请重新提交"
            en = f"judging a submission for {row['problem']} was interrupted; submit it again"
            complain(tr(zh, en))
        yield progress
