"""Landlock: the files that a process and its children can open, and whom they can signal.

The rules are made once, in the process that forks; each child puts them on itself.
"""

import ctypes
import os
from collections.abc import Iterable

from practice.judgelib.sandbox import libc

# The same numbers on every machine.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
CREATE_VERSION, RULE_PATH_BENEATH = 1, 1

# LANDLOCK_ACCESS_FS_*
WRITE_FILE, READ_FILE, READ_DIR = 1 << 1, 1 << 2, 1 << 3
# What each version of the interface can forbid: all of it is, but for what a rule allows.
FILE_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
NET_RIGHTS_SINCE, NET_RIGHTS = 4, 0b11  # bind and connect, TCP
SCOPES_SINCE, SCOPES = 6, 0b11  # abstract unix sockets and signals beyond this domain


class _RulesetAttr(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"  # Python 3.14 wants the layout of a packed structure said
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def version() -> int:
    """Return the version of the interface that the kernel offers, 0 where there is none."""
    try:
        return libc.syscall(CREATE_RULESET, None, 0, CREATE_VERSION)
    except OSError:
        return 0


def ruleset(read: Iterable[str], listed: Iterable[str], write: Iterable[str]) -> int:
    """Return a file descriptor of rules that allow opening only what lies under these paths.

    `read`: files or folders to read; `listed`: folders whose names may be read; `write`: files (of
    devices) to read and write. A path that does not exist is left out. Raises OSError where the
    kernel has no Landlock.
    """
    have = version()
    attr = _RulesetAttr(
        sum(rights for since, rights in FILE_RIGHTS.items() if since <= have),
        NET_RIGHTS if have >= NET_RIGHTS_SINCE else 0,
        SCOPES if have >= SCOPES_SINCE else 0,
    )
    size = 8 if have < NET_RIGHTS_SINCE else 16 if have < SCOPES_SINCE else 24
    rules = libc.syscall(CREATE_RULESET, ctypes.pointer(attr), size, 0)
    for path in read:
        _allow(rules, path, READ_FILE | READ_DIR if os.path.isdir(path) else READ_FILE)
    for path in listed:
        _allow(rules, path, READ_DIR)
    for path in write:
        _allow(rules, path, READ_FILE | WRITE_FILE)
    return rules


def restrict(rules: int) -> None:
    """Put rules on this process, for good; it must have given up new privileges before."""
    libc.syscall(RESTRICT_SELF, rules, 0)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        attr = _PathBeneathAttr(rights, place)
        libc.syscall(ADD_RULE, rules, RULE_PATH_BENEATH, ctypes.pointer(attr), 0)
    finally:
        os.close(place)
