"""Whose turn it is: sessions take turns, so nobody waits behind another's hundred."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, Literal

from practice.judgelib.text import Text

WHOLE = 1000
EACH = 100

State = Literal["queued", "judging", "verdict"]


@dataclass(eq=False)
class Job:
    """One request to judge. `result` is what the page gets with the verdict."""

    id: str
    problem: str
    source: bytes
    kind: Literal["run", "submit"]
    session: str
    seed: int
    recorded: bool = False  # whether a row of the store waits for the verdict
    notes: list[Text] = field(default_factory=list)
    state: State = "queued"
    result: dict[str, Any] | None = None


class Full(Exception):
    """No room; `whole` says whether in the queue or only for this session."""

    def __init__(self, whole: bool) -> None:
        super().__init__(whole)
        self.whole = whole


class FairQueue:
    """Jobs by session; `take` goes round the sessions. Any thread may use it."""

    def __init__(self, whole: int = WHOLE, each: int = EACH) -> None:
        self._whole = whole
        self._each = each
        self._count = 0
        self._changed = threading.Condition()
        # In the order of turns: the first session is served next and then goes to the end.
        self._waiting: OrderedDict[str, deque[Job]] = OrderedDict()
        self.closed = False

    def __len__(self) -> int:
        return self._count

    def check(self, session: str) -> None:
        """Raise Full where one more job of this session has no room."""
        with self._changed:
            if self._count >= self._whole:
                raise Full(whole=True)
            if len(self._waiting.get(session, ())) >= self._each:
                raise Full(whole=False)

    def put(self, job: Job) -> None:
        """Add a job at the end of its session's; `check` is the caller's business."""
        with self._changed:
            self._waiting.setdefault(job.session, deque()).append(job)
            self._count += 1
            self._changed.notify()

    def take(self, seconds: float) -> Job | None:
        """The next job; None when there was none for so long, or the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._count or self.closed, seconds)
            if self.closed or not self._count:
                return None
            session, jobs = self._waiting.popitem(last=False)
            job = jobs.popleft()
            if jobs:
                self._waiting[session] = jobs
            self._count -= 1
            job.state = "judging"
            return job

    def position(self, job: Job) -> int:
        """How many waiting jobs come before this one if no more are put; 0 when it is next."""
        with self._changed:
            own = self._waiting.get(job.session)
            if own is None or job not in own:
                return 0
            rounds = own.index(job)
            before, passed = rounds, False
            for session, jobs in self._waiting.items():
                if session == job.session:
                    passed = True
                else:
                    before += min(len(jobs), rounds + (not passed))
            return before

    def close(self) -> None:
        """Hand out no more; what waits stays in the store for the next server."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
