"""Giving up what a process could do more than others: capabilities, its user, its future gains."""

import contextlib
import ctypes
import os
import signal

from practice.judgelib.sandbox import libc
from practice.judgelib.sandbox.syscalls import machine, number

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 36, 38, 47
AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x2008_0522
LAST_CAPABILITY = 63


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


_CapSets = ctypes.c_uint32 * 6  # effective, permitted, inheritable, in two halves


def drop_all() -> None:
    """Drop every capability, for good, and refuse to gain any by running a program."""
    for capability in range(LAST_CAPABILITY + 1):
        with contextlib.suppress(OSError):  # numbers that this kernel does not know
            libc.prctl(PR_CAPBSET_DROP, capability)
    with contextlib.suppress(OSError):
        libc.prctl(PR_CAP_AMBIENT, AMBIENT_CLEAR_ALL)
    arch = machine()
    assert arch is not None, "no capability calls known for this machine"
    call = number("capset", arch)
    assert call is not None
    header = _CapHeader(CAPABILITY_VERSION_3, 0)
    libc.syscall(call, ctypes.pointer(header), ctypes.pointer(_CapSets()))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1)
    libc.prctl(PR_SET_DUMPABLE, 0)


def become(uid: int) -> None:
    """Turn from root into an ordinary user without groups."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def die_with(parent: int) -> None:
    """Have the kernel end this process when `parent`, which must be its parent, ends."""
    with contextlib.suppress(OSError, AttributeError):
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def children_of(pid: int) -> list[int]:
    """The children of a process; raises OSError where they cannot be listed."""
    with open(f"/proc/{pid}/task/{pid}/children") as listing:
        return [int(item) for item in listing.read().split()]


def adopt_orphans() -> None:
    """Become the parent of all that this process's children leave behind."""
    with contextlib.suppress(OSError, AttributeError):
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
