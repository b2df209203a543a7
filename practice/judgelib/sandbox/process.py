"""The judge's handle on one box: its first process, from the start to a certain end."""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time
from typing import Any

from practice.judgelib.inbox import keeper
from practice.judgelib.sandbox import bubblewrap, paths, privileges
from practice.judgelib.sandbox.levels import SandboxError

# Importing torch on a busy machine.
START_SECONDS = 60.0
FORK_SECONDS = 5.0
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "HOME": "/",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
}
PAGE = os.sysconf("SC_PAGE_SIZE")
_CREDENTIALS = struct.Struct("iII")


class BoxProcess:
    """A nursery in its box. Starting does not wait; `ready` does."""

    def __init__(self, level: int, torch: bool) -> None:
        self.level = level
        self.address_bytes = 0
        self._ready = False
        self._first: int | None = None  # a pidfd of the process whose end ends all others
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 (closed by kill)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ask_for_sender(self._socket)
        info, info_end = os.pipe()
        with theirs:
            try:
                self._process = self._start(theirs.fileno(), info, info_end, torch)
            finally:
                os.close(info_end)
        try:
            if level == 3:
                self._first = _first_process(info)
        finally:
            os.close(info)

    def _start(self, end: int, info: int, info_end: int, torch: bool) -> "subprocess.Popen[bytes]":
        inside = self.level == 3
        root = bubblewrap.INSIDE_ROOT if inside else str(paths.ROOT)
        everything = paths.readable() + paths.DEVICES_READ
        read, listed = paths.without(everything, paths.hidden())
        settings = {
            "socket": end,
            "root": root,
            "sites": paths.sites(),
            "torch": torch,
            "level": self.level,
            "uid": user_of(self.level, everything),
            "read": read,
            "list": listed,
            "write": paths.DEVICES_WRITE,
        }
        python = [paths.interpreter(), "-I", "-S", f"{root}/practice/judgelib/inbox/start.py"]
        outside = bubblewrap.command(info_end) if inside else []
        return subprocess.Popen(
            [*outside, *python, json.dumps(settings)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._messages,
            # `info`, the end that this process reads: while bubblewrap has it too, it can write
            # there although the judge has been killed. Else it would die of that, and leave the
            # first process of a box half made, which nobody ends.
            pass_fds=[end, info, info_end],
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )

    def ready(self) -> None:
        """Wait until the nursery is there; raises SandboxError where it does not come."""
        if self._ready:
            return
        pid = self._hear(self._socket, START_SECONDS)
        self.address_bytes = memory_of(pid)[0]
        self._ready = True

    def new_keeper(self) -> socket.socket:
        """Return a socket to a fresh keeper, which may not be listening yet."""
        self.ready()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            try:
                socket.send_fds(self._socket, [keeper.NEW_KEEPER], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise self._error("沙箱不在了", "the box has gone") from error
        return ours

    def greet(self, keeper_socket: socket.socket) -> None:
        """Wait until a keeper listens; raises SandboxError where it does not."""
        self._hear(keeper_socket, FORK_SECONDS)

    def kill(self) -> None:
        """End every process of the box, now, and wait for it."""
        if self.level == 0:
            self._kill_below()
        self._socket.close()
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            os.close(self._first)
            self._first = None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._messages.close()

    def _kill_below(self) -> None:
        """End what a job has left in a session of its own, where no sandbox forbids that."""
        deadline = time.monotonic() + FORK_SECONDS
        with contextlib.suppress(OSError):
            while privileges.children_of(self._process.pid) and time.monotonic() < deadline:
                _kill_children(self._process.pid)

    def _hear(self, sock: socket.socket, seconds: float) -> int:
        """Wait for the letter "ready" and return the id of its sender as this process sees it."""
        sock.settimeout(seconds)
        try:
            letter, pid = receive_with_sender(sock, 1)
        except OSError as error:
            raise self._error("沙箱没有回答", "the box does not answer") from error
        sock.settimeout(None)
        if letter != keeper.READY:
            raise self._error("沙箱结束了", "the box has ended")
        return pid or self._process.pid

    def _error(self, zh: str, en: str) -> SandboxError:
        """Return an error that ends with the last line that the box said."""
        self._messages.seek(0)
        words = self._messages.read(8192).decode("utf-8", "replace").strip()
        *_, said = words.splitlines() or ["-"]
        level = self.level
        return SandboxError(f"{zh}（{level} 级）：{said}", f"{en} (level {level}): {said}")


def user_of(level: int, read: list[str]) -> int | None:
    """The user that a box turns into; None: it stays who the judge is.

    Root's box runs as nobody, wherever nobody can read the interpreter and the libraries.
    """
    if os.geteuid() != 0 or level == 0:
        return None
    return bubblewrap.NOBODY if level == 3 or paths.reachable_by_all(read) else None


def ask_for_sender(sock: socket.socket) -> None:
    """Have the kernel say who sends: inside its own namespace a process has another number."""
    if hasattr(socket, "SO_PASSCRED"):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)


def receive_with_sender(sock: socket.socket, count: int) -> tuple[bytes, int | None]:
    """Return up to `count` bytes and the sender's process id, None where it is not known."""
    data, extra, _, _ = sock.recvmsg(count, socket.CMSG_SPACE(_CREDENTIALS.size))
    for level, kind, body in extra:
        if level == socket.SOL_SOCKET and kind == getattr(socket, "SCM_CREDENTIALS", None):
            return data, _CREDENTIALS.unpack(body[: _CREDENTIALS.size])[0]
    return data, None


def memory_of(pid: int) -> tuple[int, int]:
    """Return (bytes of address space, bytes of memory that is its own); zeros where unknown."""
    try:
        with open(f"/proc/{pid}/statm") as listing:
            size, resident, shared = (int(item) for item in listing.read().split()[:3])
    except (OSError, ValueError):
        return 0, 0
    return size * PAGE, (resident - shared) * PAGE


def _kill_children(pid: int) -> None:
    """Send SIGKILL to all below a process, the farthest first; raises OSError."""
    for child in privileges.children_of(pid):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            _kill_children(child)
            os.kill(child, signal.SIGKILL)


def _first_process(info: int) -> int | None:
    """Return a pidfd of the process that bubblewrap names; None where it could not start one."""
    said = b""
    deadline = time.monotonic() + START_SECONDS
    while select.select([info], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(info, 4096)
        said += part
        if not part or b"}" in said:
            break
    try:
        described: dict[str, Any] = json.loads(said)
        return os.pidfd_open(described["child-pid"])
    except (ValueError, KeyError, OSError):
        return None
