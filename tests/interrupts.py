"""Ctrl-C at any line: a KeyboardInterrupt before the n-th line of the package that is executed."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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

    def on_line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal num_lines
        if event == "line" and not places:
            place = frame.f_code.co_filename, frame.f_lineno
            if not linecache.getline(*place).lstrip().startswith("with "):
                num_lines += 1
                if num_lines == number:
                    places.append(f"{place[0]}:{place[1]}")
                    raise KeyboardInterrupt
        return on_line

    def on_call(frame: FrameType, event: str, _: Any) -> Any:
        return on_line if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield places
    finally:
        sys.settrace(before)
