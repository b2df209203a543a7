"""Which processes live below a process."""

import contextlib
import os
import time
from pathlib import Path


def descendants(root: int) -> set[int]:
    """Return the ids of all living processes below `root`."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            # It may end while it is looked at.
            with contextlib.suppress(OSError):
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
                parents[int(entry)] = int(fields[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


def still_there(pids: set[int], seconds: float = 3.0) -> set[int]:
    """Return those of `pids` that neither ended nor were buried within so many seconds."""
    deadline = time.monotonic() + seconds
    while (left := {pid for pid in pids if os.path.exists(f"/proc/{pid}")}) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.01)
    return left
