"""The kernel's own limits on one process."""

import contextlib
import resource
import sys
from typing import TypedDict


class Caps(TypedDict):
    """What a job may use: seconds of processor, bytes of address space (0: as it is)."""

    cpu_s: int
    address_bytes: int


STACK_BYTES = 8 << 20
OPEN_FILES = 64


def apply(caps: Caps) -> None:
    """Limit this process, for good: none of these can be raised again without privileges."""
    # The second figure of the processor's time ends the process even where it ignores the first.
    wanted = [
        (resource.RLIMIT_CPU, caps["cpu_s"], caps["cpu_s"] + 1),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES),
        (resource.RLIMIT_STACK, STACK_BYTES, STACK_BYTES),
        # For level 0, where no filter forbids a fork; root is not bound by it.
        (resource.RLIMIT_NPROC, 0, 0),
    ]
    if caps["address_bytes"]:
        wanted.append((resource.RLIMIT_AS, caps["address_bytes"], caps["address_bytes"]))
    for which, soft, hard in wanted:
        _, ceiling = resource.getrlimit(which)
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        # macOS refuses some of them.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (soft, hard))


def peak_kib(usage: resource.struct_rusage) -> int:
    """Return the most memory that a process has used; macOS counts it in bytes."""
    return usage.ru_maxrss // 1024 if sys.platform == "darwin" else usage.ru_maxrss
