"""Whose turn it is: addresses take turns, and an address's sessions.

So nobody waits behind another's hundred, nor behind one who comes with a new session each time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from practice.judgelib.text import Text

WHOLE = 1000
EACH = 100
WHOLE_BYTES = 64 << 20

State = Literal["queued", "judging", "verdict"]


class Reader(NamedTuple):
    """Who asks: the address that he comes from, and a trace of his browser's cookie."""

    address: str
    session: str


@dataclass(eq=False)
class Job:
    """One request to judge. `result` is what the page gets with the verdict."""

    id: str
    problem: str
    source: bytes
    kind: Literal["run", "submit"]
    reader: Reader
    seed: int
    recorded: bool = False  # whether a row of the store waits for the verdict
    notes: list[Text] = field(default_factory=list)
    state: State = "queued"
    result: dict[str, Any] | None = None


class Full(Exception):
    """No room; `whole` says whether in the queue or only for this reader."""

    def __init__(self, whole: bool) -> None:
        super().__init__(whole)
        self.whole = whole


class FairQueue:
    """Jobs by address and session; `take` goes round both. Any thread may use it.

    `whole` bounds the jobs that wait, `whole_bytes` their sources, of which one address has at most
    half; `each` bounds the jobs of one session.
    """

    def __init__(
        self, whole: int = WHOLE, each: int = EACH, whole_bytes: int = WHOLE_BYTES
    ) -> None:
        self._whole = (whole, whole_bytes)
        self._each = each
        self._changed = threading.Condition()
        # In the order of turns: the first address is served next and then goes to the end, and so
        # does the first of its sessions.
        self._waiting: OrderedDict[str, OrderedDict[str, deque[Job]]] = OrderedDict()
        self.closed = False

    def __len__(self) -> int:
        with self._changed:
            return sum(map(_count, self._waiting.values()))

    def check(self, reader: Reader, size: int) -> None:
        """Raise Full where one more job of this reader, with a source of `size`, has no room."""
        with self._changed:
            own = self._waiting.get(reader.address, OrderedDict())
            jobs = [job for sessions in self._waiting.values() for job in _jobs(sessions)]
            if _exceeds(self._whole, jobs, size):
                raise Full(whole=True)
            half = (self._whole[0] // 2, self._whole[1] // 2)
            if len(own.get(reader.session, ())) >= self._each or _exceeds(half, _jobs(own), size):
                raise Full(whole=False)

    def put(self, job: Job) -> None:
        """Add a job at the end of its reader's; `check` is the caller's business."""
        with self._changed:
            sessions = self._waiting.setdefault(job.reader.address, OrderedDict())
            sessions.setdefault(job.reader.session, deque()).append(job)
            self._changed.notify()

    def take(self, seconds: float) -> Job | None:
        """The next job; None when there was none for so long, or the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.closed, seconds)
            if self.closed or not self._waiting:
                return None
            address, sessions = self._waiting.popitem(last=False)
            session, jobs = sessions.popitem(last=False)
            job = jobs.popleft()
            if jobs:
                sessions[session] = jobs
            if sessions:
                self._waiting[address] = sessions
            job.state = "judging"
            return job

    def position(self, job: Job) -> int:
        """How many waiting jobs come before this one if no more are put; 0 when it is next."""
        with self._changed:
            address, session = job.reader
            sessions = self._waiting.get(address, OrderedDict())
            own = sessions.get(session, ())
            if job not in own:
                return 0
            counts = {name: len(jobs) for name, jobs in sessions.items()}
            rounds = _ahead(counts, session, own.index(job))
            counts = {name: _count(of_one) for name, of_one in self._waiting.items()}
            return _ahead(counts, address, rounds)

    def close(self) -> None:
        """Hand out no more; what waits stays in the store for the next server."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()


def _jobs(sessions: Mapping[str, deque[Job]]) -> list[Job]:
    return [job for jobs in sessions.values() for job in jobs]


def _count(sessions: Mapping[str, deque[Job]]) -> int:
    return sum(map(len, sessions.values()))


def _exceeds(bounds: tuple[int, int], jobs: list[Job], size: int) -> bool:
    """Whether a job more, with a source of `size`, goes beyond so many jobs or bytes."""
    return len(jobs) >= bounds[0] or sum(len(job.source) for job in jobs) + size > bounds[1]


def _ahead(counts: dict[str, int], own: str, rounds: int) -> int:
    """How many jobs come first where names take turns, and `rounds` of its own name's do."""
    before, passed = rounds, False
    for name, count in counts.items():
        if name == own:
            passed = True
        else:
            before += min(count, rounds + (not passed))
    return before
