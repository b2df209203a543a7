"""The box's first process: loads torch once, then forks.

    nursery   preloaded, never near a submission; forks a keeper when the judge wants a fresh one
    keeper    serves jobs: for each it forks a child, waits for it, buries what it left behind
    child     one submission (child.py)

The judge speaks to nursery and keeper over a socket each: one letter, with it file descriptors,
then perhaps a frame.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import traceback
from typing import Any, NoReturn

from practice.judgelib import frames
from practice.judgelib.inbox import child
from practice.judgelib.sandbox import privileges, rlimits
from practice.judgelib.sandbox.confine import Confinement

NEW_KEEPER, JOB, KILL, READY = b"N", b"J", b"K", b"R"


def serve(settings: dict[str, Any]) -> None:
    """Prepare all that children share, then be the nursery until the judge hangs up."""
    if settings["uid"] is not None:
        privileges.become(settings["uid"])
    if settings["torch"]:
        _load_torch()
    confinement = Confinement(
        settings["level"], settings["read"], settings["list"], settings["write"]
    )
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers need no burial
    # At level 0 a job can end its keeper: what it leaves stays in reach of `BoxProcess.kill`.
    privileges.adopt_orphans()
    nursery = socket.socket(fileno=settings["socket"])
    nursery.sendall(READY)
    while True:
        letter, ends, _, _ = socket.recv_fds(nursery, 1, 1)
        if letter != NEW_KEEPER:
            return
        parent = os.getpid()
        if os.fork() == 0:
            nursery.close()
            privileges.die_with(parent)
            Keeper(socket.socket(fileno=ends[0]), confinement).serve()
        os.close(ends[0])


def _load_torch() -> None:
    import torch

    # A second thread would not survive a fork, and in the box none can be made: a reader's own
    # call, right everywhere else, must not end his process there.
    torch.set_num_threads(1)
    torch.set_num_threads = _ignore  # type: ignore[assignment]
    # The first of these imports hundreds of modules; each child would pay for it again.
    torch.empty_like(torch.empty(1, device="meta"), device="cpu")


def _ignore(count: int) -> None:
    """Stands for `torch.set_num_threads` in the box."""


class Keeper:
    """Serves the jobs that come over one socket, one at a time."""

    def __init__(self, control: socket.socket, confinement: Confinement) -> None:
        self._control = control
        self._confinement = confinement
        privileges.adopt_orphans()
        self._died, waker = os.pipe()
        os.set_blocking(self._died, False)
        os.set_blocking(waker, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)

    def serve(self) -> NoReturn:
        """Take jobs until the judge hangs up."""
        self._control.sendall(READY)
        try:
            while True:
                letter, ends, _, _ = socket.recv_fds(self._control, 1, 3)
                if letter == b"":
                    os._exit(0)
                if letter != JOB or len(ends) != 3:
                    continue  # a KILL that came after the child's own end
                caps = frames.recv(self._control)
                frames.send(self._control, self._run((ends[0], ends[1], ends[2]), caps))
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def _run(self, ends: tuple[int, int, int], caps: Any) -> dict[str, Any]:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            privileges.die_with(parent)
            child.live(ends, caps, self._confinement)
        for end in ends:
            os.close(end)
        status, usage = self._wait(pid)
        return {
            "status": os.waitstatus_to_exitcode(status),
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "peak_kib": rlimits.peak_kib(usage),
            "left": _bury(pid),
        }

    def _wait(self, pid: int) -> Any:
        """Return how a child ended; kill it when the judge says so or is gone."""
        watched = select.poll()
        watched.register(self._control, select.POLLIN)
        watched.register(self._died, select.POLLIN)
        while True:
            gone, status, usage = os.wait4(pid, os.WNOHANG)
            if gone == pid:
                return status, usage
            for number, _ in watched.poll():
                if number == self._died:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._died, 4096)
                elif self._control.recv(1) == KILL:
                    os.kill(pid, signal.SIGKILL)
                else:
                    os.kill(pid, signal.SIGKILL)
                    os._exit(0)


def _bury(pid: int) -> int:
    """End what a child left behind and return how many there were."""
    count = 0
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    while True:
        try:
            found, _ = os.waitpid(-1, 0 if _kill_children() else os.WNOHANG)
        except ChildProcessError:
            return count
        count += 1
        if found == 0:
            return count  # the judge replaces this keeper


def _kill_children() -> bool:
    """Send SIGKILL to every child of this process; False where they cannot be listed."""
    try:
        orphans = privileges.children_of(os.getpid())
    except OSError:
        return False
    for orphan in orphans:
        with contextlib.suppress(ProcessLookupError):
            os.kill(orphan, signal.SIGKILL)
    return True
