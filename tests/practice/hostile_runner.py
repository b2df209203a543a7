"""Runs hostile submissions against one box and reports what each came to, as JSON.

    JUDGE_TOKEN=token-1234 python hostile_runner.py LEVEL [NAME ...]

A process of its own, so that it can be started as any user; it plays the judge. The token is what
must not get out: it is in this process's environment and memory, and in a file.
"""

import contextlib
import ctypes
import json
import os
import random
import resource
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hostile_forging import FORGING, RESOURCES
from hostile_inside import INSIDE
from hostile_processes import PROCESSES
from hostile_reading import READING
from process_tree import descendants

from practice.judgelib.box import Box, JobResult, Limits
from practice.judgelib.compare import compare
from practice.judgelib.sandbox import paths

SUBMISSIONS = READING | PROCESSES | FORGING | INSIDE | RESOURCES
LIMITS = Limits(wall_s=3.0, cpu_s=2, memory_mb=192, output_bytes=100_000, case_s=0.6)
HONEST = "def f(x):\n    return x * 7 + 3\n"
CASES = 3
# Words that a submission says only where it got what it wanted.
BOASTS = ("root:x:0", "GOT ", "CONNECTED", "WROTE", "RAISED")
SETTLE_SECONDS = 2.0
SLOW_SECONDS = 1.5


@dataclass(frozen=True)
class Row:
    """What one submission came to, and what it did to the judge and to the next in line."""

    name: str
    level: int
    uid: int
    ended: str
    detail: str
    wall_s: float
    right_answers: int
    leaks: list[str]
    connections: int
    left_processes: int
    box_lost: bool
    next_s: float
    next_ok: bool
    judge_grew_mb: float


@dataclass
class Targets:
    """What there is to steal and to reach."""

    token: str
    file: str
    sockets: list[socket.socket]
    names: dict[str, object]

    def connections(self) -> int:
        """How many of the listening sockets have been reached since the last call."""
        count = 0
        for sock in self.sockets:
            with contextlib.suppress(BlockingIOError):
                if sock.type == socket.SOCK_STREAM:
                    sock.accept()[0].close()
                else:
                    sock.recv(16)
                count += 1
        return count

    def prelude(self) -> str:
        """The lines that tell a submission where everything is."""
        return "".join(f"{name} = {value!r}\n" for name, value in self.names.items())


@contextlib.contextmanager
def targets(token: str) -> Iterator[Targets]:
    """Set up a secret file and listening sockets; `token` is in this process's environment."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)
        file = Path(folder, "secret")
        file.write_text(token)
        unix = f"{folder}/socket"
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        sockets = [tcp, udp]
        for kind, name in (
            (socket.SOCK_STREAM, unix),
            (socket.SOCK_STREAM, f"\0{unix}"),
            (socket.SOCK_DGRAM, f"{unix}.datagrams"),
        ):
            sock = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            sock.bind(name)
            if kind == socket.SOCK_STREAM:
                sock.listen()
            if not name.startswith("\0"):
                os.chmod(name, 0o777)
            sockets.append(sock)
        for sock in sockets:
            sock.setblocking(False)
        names = {
            "SECRET_FILE": str(file),
            "ROOT": str(paths.ROOT),
            "PID": os.getpid(),
            "PORT": tcp.getsockname()[1],
            "UDP_PORT": udp.getsockname()[1],
            "UNIX": unix,
        }
        yield Targets(token, str(file), sockets, names)


def run_all(level: int, names: list[str]) -> list[Row]:
    """Run the named submissions, an honest one after each."""
    # What is left behind anywhere below becomes a child of this process, and is counted.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    with targets(os.environ["JUDGE_TOKEN"]) as aims, Box(level) as box:
        # Twice: the second run finds everything loaded, here and there.
        assert all(_is_right(*_attempt(box, HONEST)) for _ in range(2))
        usual = len(descendants(os.getpid()))
        return [_careful_row(box, name, aims, usual, _peak_mb()) for name in names]


def _peak_mb() -> float:
    """The most memory that this process, the judge, has ever used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _careful_row(box: Box, name: str, aims: Targets, usual: int, before_mb: float) -> Row:
    """The row of a submission; where the next in line waited long, of its second meeting.

    What delays others by its doing does so every time; a busy machine does not.
    """
    row = _row(box, name, aims, usual, before_mb)
    return row if row.next_s < SLOW_SECONDS else _row(box, name, aims, usual, before_mb)


def _row(box: Box, name: str, aims: Targets, usual: int, before_mb: float) -> Row:
    source = aims.prelude() + SUBMISSIONS[name]
    nursery = box._process
    result, expected = _attempt(box, source)
    over = time.monotonic()
    grown_mb = _peak_mb() - before_mb
    honest = _attempt(box, HONEST)
    next_s = time.monotonic() - over
    return Row(
        name=name,
        level=box.level,
        uid=os.geteuid(),
        ended=result.ended,
        detail=result.detail,
        wall_s=round(result.wall_s, 3),
        right_answers=_right(result, expected),
        leaks=_leaks(result, aims.token),
        connections=aims.connections(),
        left_processes=_left(usual),
        box_lost=box._process is not nursery,
        next_s=round(next_s, 3),
        next_ok=_is_right(*honest),
        judge_grew_mb=round(grown_mb, 1),
    )


def _attempt(box: Box, source: str) -> tuple[JobResult, list[int]]:
    inputs = [random.getrandbits(31) for _ in range(CASES)]
    job = {"files": {"submission.py": source}, "entry": ["submission", "f"], "torch": True}
    result = box.run(job, [{"args": [x], "kwargs": {}} for x in inputs], LIMITS)
    return result, [x * 7 + 3 for x in inputs]


def _right(result: JobResult, expected: list[int]) -> int:
    """How many answers the judge's own comparison takes for right."""
    return sum(
        "ok" in answer and compare(wanted, answer["ok"], None).equal
        for answer, wanted in zip(result.answers, expected, strict=False)
    )


def _is_right(result: JobResult, expected: list[int]) -> bool:
    return result.ended == "done" and _right(result, expected) == len(expected)


def _leaks(result: JobResult, token: str) -> list[str]:
    """What it should not have known or got; the quoted lines of a traceback do not count."""
    said = [result.stdout, result.stderr]
    for answer in result.answers:
        said.append(repr(answer.get("ok")) + answer.get("error", {}).get("message", ""))
    return [word for word in (token, *BOASTS) if any(word in text for text in said)]


def _left(usual: int) -> int:
    """Processes beyond the box's own, once the kernel has had a moment to bury them."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (extra := len(descendants(os.getpid())) - usual) > 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    return extra


if __name__ == "__main__":
    wanted = sys.argv[2:] or list(SUBMISSIONS)
    print(json.dumps([asdict(row) for row in run_all(int(sys.argv[1]), wanted)]))
