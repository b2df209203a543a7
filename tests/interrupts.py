"""Ctrl-C at any line: a KeyboardInterrupt before the n-th line of the package that is executed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import minisgl

PACKAGE = str(Path(minisgl.__file__).parent)


@contextmanager
def interrupt_at(number: int) -> Iterator[list[str]]:
    """Interrupt the code in the `with` block, once; what is yielded then says where.

    The list stays empty where that many lines were never reached: a test can count up until then.
    Lines that open a `with` are left out. Python comes back to them before it calls `__exit__`,
    and between the two it handles no signal.
    """
    places: list[str] = []
    num_lines = 0

    @cache
    def tracer_of(path: str) -> Any:
        """What Python calls before each line of that file's functions."""
        if not path.startswith(PACKAGE):
            return None
        left_out = _lines_with(path)

        def on_line(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal num_lines
            if event == "line" and frame.f_lineno not in left_out:
                num_lines += 1
                if num_lines == number:
                    places.append(f"{path}:{frame.f_lineno}")
                    raise KeyboardInterrupt  # which ends the tracing too
            return on_line

        return on_line

    before = sys.gettrace()
    sys.settrace(lambda frame, event, _: tracer_of(frame.f_code.co_filename))
    try:
        yield places
    finally:
        sys.settrace(before)


@cache
def _lines_with(path: str) -> frozenset[int]:
    lines = Path(path).read_text("utf-8").splitlines()
    return frozenset(n for n, line in enumerate(lines, 1) if line.lstrip().startswith("with "))
