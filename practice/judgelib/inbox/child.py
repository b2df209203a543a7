"""One submission's process: confine yourself, import the reader's code, answer case by case."""

import contextlib
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from practice.judgelib import frames
from practice.judgelib.inbox import absent
from practice.judgelib.inbox.importer import MemoryFinder
from practice.judgelib.inbox.report import describe
from practice.judgelib.sandbox.confine import Confinement
from practice.judgelib.sandbox.rlimits import Caps, peak_kib

# Where the judge's ends of the pipes lie once the child has cleared its table of files.
RESULT = 3
DRIVER = "driver.py"


def live(ends: tuple[int, int, int], caps: Caps, confinement: Confinement) -> NoReturn:
    """Run one job over the ends (result, stdout, stderr); never returns."""
    status = 1
    outputs: list[Any] = []
    try:
        outputs = _settle(ends, confinement.keep())
        _say_hello()
        confinement.enter(caps)
        status = _serve(frames.read(_fill, frames.INPUT), outputs)
    except EOFError:
        status = 0
    except BaseException as error:
        # Only the box's own mistakes come here; the judge shows the last line of stderr.
        os.write(2, f"box: {type(error).__name__}: {error}\n".encode())
    finally:
        _flush(outputs)
        os._exit(status)


def _flush(outputs: list[Any]) -> None:
    for output in outputs:
        with contextlib.suppress(BaseException):
            output.flush()


def _settle(ends: tuple[int, int, int], kept: list[int]) -> list[Any]:
    """Keep the job's own files and no other, and return the two outputs.

    Nothing of the keeper's and nothing of the judge's stays open.
    """
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    # Copies above the targets first, or one could land on another.
    copies = [os.dup(end) for end in (nothing, ends[1], ends[2], ends[0])]
    for target, copy in enumerate(copies):
        os.dup2(copy, target, inheritable=False)
    below = RESULT + 1
    for keep in sorted(kept):
        os.closerange(below, keep)
        below = keep + 1
    os.closerange(below, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (open till the end)
    sys.stdout, sys.stderr = outputs = [_text_output(1), _text_output(2)]
    return outputs


def _text_output(number: int) -> Any:
    """Line by line: what was printed before an endless loop must arrive."""
    return open(number, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _say_hello() -> None:
    """Tell the judge which process this is (the kernel adds the id) and how large it begins."""
    start = peak_kib(resource.getrusage(resource.RUSAGE_SELF))
    os.write(RESULT, struct.pack(">QQ", os.getpid(), start))


def _serve(job: dict[str, Any], outputs: list[Any]) -> int:
    """Answer every case until the judge hangs up.

    Code that cannot even be imported answers the first case with its error, and that is all.
    """
    files, limits = job["files"], frames.answer_limits(job["torch"])
    reader_files = [name for name in files if name != DRIVER]
    MemoryFinder(files).install()
    away = absent.take_away(job.get("absent", []))  # noqa: F841 (as long as this runs)
    try:
        call = _entry(job)
    except BaseException as error:
        # Read first: an end with unread bytes would take the answer with it.
        frames.read(_fill, frames.INPUT)
        _answer({"error": describe(error, reader_files)}, limits)
        return 1
    while True:
        case = frames.read(_fill, frames.INPUT)
        try:
            answer = {"ok": call(case)}
        except BaseException as error:
            answer = {"error": describe(error, reader_files)}
        _flush(outputs)  # what was printed belongs to this case
        _answer(answer, limits)


def _entry(job: dict[str, Any]) -> Callable[[Any], Any]:
    """Import the code and return what answers a case: the driver's `run`, or the function."""
    if DRIVER in job["files"]:
        return __import__("driver").run
    module, name = job["entry"]
    function = getattr(__import__(module), name)
    return lambda case: _call(function, case)


class InputChanged(Exception):
    """A function changed what it was given, which belongs to its caller."""


def _call(function: Callable[..., Any], case: dict[str, Any]) -> Any:
    before = frames.encode(case, frames.INPUT)
    answer = function(*case["args"], **case["kwargs"])
    try:
        same = frames.encode(case, frames.INPUT) == before
    except frames.FrameError:
        same = False
    if not same:
        raise InputChanged("the inputs are the caller's and must stay as they are")
    return answer


def _answer(answer: dict[str, Any], limits: frames.FrameLimits) -> None:
    try:
        frame = frames.encode(answer, limits)
    except (frames.FrameError, RecursionError) as error:
        reason = str(error).replace("['ok']", "the answer", 1)
        problem = {"type": "FrameError", "message": reason, "traceback": ""}
        frame = frames.encode({"error": problem}, limits)
    view = memoryview(frame)
    while view:
        view = view[os.write(RESULT, view) :]


def _fill(buffer: memoryview) -> None:
    while buffer:
        data = os.read(RESULT, min(len(buffer), 1 << 20))
        if not data:
            raise EOFError("the judge hung up")
        buffer[: len(data)] = data
        buffer = buffer[len(data) :]
