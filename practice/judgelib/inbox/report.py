"""An exception of the reader's code, as plain text that shows his own lines and no others."""

import traceback
from collections.abc import Collection

MAX_MESSAGE = 2_000
MAX_FRAMES = 12
# What torch raises where Python would raise MemoryError.
OUT_OF_MEMORY = "can't allocate memory"


def describe(error: BaseException, reader_files: Collection[str]) -> dict[str, str]:
    """Return type, message and traceback of an exception, all short.

    Memory that ran out in torch is called `MemoryError` too.
    """
    kind = type(error).__name__
    message = _message(error)
    if isinstance(error, RuntimeError) and OUT_OF_MEMORY in message:
        kind = "MemoryError"
    return {"type": kind, "message": message, "traceback": _lines(error, reader_files)}


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # the reader's __str__ can do anything
        text = "(its message cannot be shown)"
    # A type of its own could go on behaving oddly after this line.
    return "".join(text[:MAX_MESSAGE]).encode("utf-8", "replace").decode("utf-8")


def _lines(error: BaseException, reader_files: Collection[str]) -> str:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename in reader_files
    ]
    if len(frames) > MAX_FRAMES:
        half = MAX_FRAMES // 2
        head, tail = traceback.format_list(frames[:half]), traceback.format_list(frames[-half:])
        lines = [*head, f"  ({len(frames) - 2 * half} more calls)\n", *tail]
    else:
        lines = traceback.format_list(frames)
    if isinstance(error, SyntaxError) and error.filename in reader_files:
        quoted = (error.text or "").strip()
        lines.append(f'  File "{error.filename}", line {error.lineno}\n    {quoted}\n')
    return "".join(lines)[: 8 * MAX_MESSAGE]
