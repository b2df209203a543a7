"""What the commands share: a Python that has the project's packages, an output that may close."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

# What to do where there is none, in Chinese and in English.
NO_ENVIRONMENT = (
    "还没有能用的环境：python3 tools/dev.py demo 会建好它",
    "no environment that works here: python3 tools/dev.py demo makes it",
)


def own_python(root: Path) -> str | None:
    """The Python of `.venv`; None where there is none that this user can start."""
    own = str(root / ".venv" / "bin" / "python")
    return own if os.access(own, os.X_OK) else None


def usable_cpus() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def use_environment(root: Path, *packages: str) -> None:
    """Go on as the same command of `.venv`, where this Python lacks a package and there is one."""
    own = own_python(root)
    lacking = any(find_spec(package) is None for package in packages)
    if lacking and own and sys.executable != own:
        os.execv(own, [own, *sys.orig_argv[1:]])


@contextmanager
def pipe_may_close() -> Iterator[None]:
    """End without a word where what reads the output has gone, as `head` goes."""
    try:
        yield
        print(end="", flush=True)
    except BrokenPipeError:
        # What is still buffered goes nowhere, instead of into a traceback when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(128 + signal.SIGPIPE) from None
