"""Which levels and users the sandbox tests run as, and how a script runs as another user."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from practice.judgelib.sandbox import bubblewrap, levels, paths

NOBODY = 65534
ROOT = paths.ROOT
# As root: give up the groups, the group and the user for good, then run what follows.
BECOME = (
    f"import os, sys; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def need(level: int) -> None:
    """Skip where this machine lacks a level, with the reason; fail where it was to have it.

    `MINISGL_REQUIRE_LEVEL=3` says that level 3 and all below must be here, as in CI.
    """
    missing = levels.obstacle(level)
    if missing is None:
        return
    if level <= int(os.environ.get("MINISGL_REQUIRE_LEVEL", "0")):
        pytest.fail(f"level {level} is required here: {missing}")
    pytest.skip(f"no level {level} here: {missing}")


def as_user(user: str, script: list[str]) -> list[str]:
    """Return the command that runs a Python script as "root" or as an "ordinary" user.

    Skips what cannot be: nobody turns into root. Where we are root and the interpreter lies in a
    folder closed to others, or this checkout does, a mount namespace opens just the way to it.
    """
    python = [sys.executable, *script]
    if user == "root":
        if os.geteuid() != 0:
            pytest.skip("not started as root")
        return python
    if os.geteuid() != 0:
        return python
    needed = [sys.base_prefix, sys.prefix, str(ROOT)]
    become = [paths.interpreter(), "-I", "-c", BECOME, *python]
    closed = _closed_folders(needed)
    if not closed:
        return become
    if bubblewrap.try_out() is not None:
        pytest.skip(f"{closed[0]} is closed to other users, and there is no bubblewrap to open it")
    opened = ["--dev-bind", "/", "/"]
    for folder in closed:
        opened += ["--perms", "0755", "--tmpfs", str(folder)]
    for place in dict.fromkeys(needed):
        above = [up for up in closed if Path(place).is_relative_to(up)]
        for folder in reversed(Path(place).parents) if above else []:
            if folder not in closed and folder.is_relative_to(above[0]):
                opened += ["--perms", "0755", "--dir", str(folder)]
        opened += ["--ro-bind", place, place]
    return ["bwrap", *opened, "--cap-add", "ALL", "--", *become]


def start(command: list[str]) -> "subprocess.Popen[str]":
    """Start a command in the tests' folder, a token to steal in its environment."""
    extra = {
        "JUDGE_TOKEN": f"token-{secrets.token_hex(8)}",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/",
    }
    return subprocess.Popen(
        command,
        cwd=ROOT / "tests" / "practice",
        env={**os.environ, **extra},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _closed_folders(places: list[str]) -> list[Path]:
    """The topmost folder on the way to each of the places that others may not enter."""
    found: dict[Path, None] = {}
    for place in places:
        for folder in reversed(Path(place).parents):
            if not folder.stat().st_mode & 0o001:
                found[folder] = None
                break
    return list(found)
