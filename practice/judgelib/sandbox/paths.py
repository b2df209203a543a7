"""Which files the box needs: the interpreter, its libraries, the installed packages, no more."""

import os
import sys
import sysconfig
from pathlib import Path

# This folder's repository must not be readable in the box: it holds the solutions.
ROOT = Path(__file__).resolve().parents[3]
# What runs inside the box, relative to the root.
INSIDE = [
    f"practice/judgelib/{name}"
    for name in ("frames.py", "values.py", "tensorbytes.py", "inbox", "sandbox")
]
SYSTEM = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/proc/cpuinfo"]
DEVICES_READ = ["/dev/urandom"]
DEVICES_WRITE = ["/dev/null"]
# An installed copy of this project would be the reference solution itself.
OURS = ["minisgl", "practice"]


def interpreter() -> str:
    """Return the real path of the running Python, outside any virtual environment."""
    return os.path.realpath(sys.executable)


def sites() -> list[str]:
    """Return the folders of installed packages, in the order of the import path."""
    names = ("site-packages", "dist-packages")
    found = [os.path.abspath(entry) for entry in sys.path if os.path.basename(entry) in names]
    return [entry for entry in dict.fromkeys(found) if os.path.isdir(entry)]


def readable() -> list[str]:
    """Return what a submission may read: the paths of it that exist here."""
    prefixes = [sys.base_prefix, str(Path(interpreter()).parents[1])]
    libraries = [f"{prefix}/{name}" for prefix in prefixes for name in ("lib", "lib64")]
    wanted = [interpreter(), *libraries, *sites(), *SYSTEM]
    return [path for path in dict.fromkeys(wanted) if os.path.exists(path)]


def hidden() -> list[str]:
    """Return what lies under a readable folder and must not be seen."""
    base = {"base": sys.base_prefix, "platbase": sys.base_prefix}
    outer = sysconfig.get_path("purelib", "posix_prefix", base)  # below a virtual environment
    places = dict.fromkeys([*sites(), outer])
    return [path for place in places for name in OURS if os.path.exists(path := f"{place}/{name}")]


def without(paths: list[str], gone: list[str]) -> tuple[list[str], list[str]]:
    """Return (what to read, what to list) so that all of `paths` is covered but for `gone`.

    Landlock only allows: to leave out one entry of a folder, all others are named, and the folder
    itself is listed, or Python would find no module in it.
    """
    read: list[str] = []
    listed: list[str] = []
    for path in paths:
        real = os.path.realpath(path)
        inner = [item for item in gone if Path(os.path.realpath(item)).is_relative_to(real)]
        if not inner:
            read.append(path)
        elif real not in map(os.path.realpath, inner):
            entries = [f"{path}/{name}" for name in sorted(os.listdir(path))]
            below = without(entries, inner)
            read += below[0]
            listed += [path, *below[1]]
    return read, listed


def reachable_by_all(paths: list[str]) -> bool:
    """Whether any user may walk to all of these paths and read them."""
    for path in paths:
        chain = [Path(os.path.realpath(path)), *Path(os.path.realpath(path)).parents]
        if any(not place.stat().st_mode & (0o001 if place.is_dir() else 0o004) for place in chain):
            return False
    return True
