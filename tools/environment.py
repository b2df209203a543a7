"""Commands that need the project's packages, typed with whatever Python is at hand."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

# What to do where there is none, in Chinese and in English.
NO_ENVIRONMENT = (
    "还没有环境：python3 tools/dev.py demo 会建好它",
    "no environment yet: python3 tools/dev.py demo makes it",
)


def use_environment(root: Path, *packages: str) -> None:
    """Go on as the same command of `.venv`, where this Python lacks a package and there is one."""
    own = root / ".venv" / "bin" / "python"
    lacking = any(find_spec(package) is None for package in packages)
    if lacking and own.is_file() and Path(sys.executable) != own:
        os.execv(own, [str(own), *sys.orig_argv[1:]])
