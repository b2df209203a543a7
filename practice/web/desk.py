"""From the post to the verdict, and across the death of a server.

A submission is a row of the store before the reader is told that it is accepted for judging, under
the name of this server. A server that starts, or is idle, takes over the rows of dead ones.
A trial run is of the moment and lives in memory only.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from practice.judgelib import sessions
from practice.judgelib.catalogue import Problem
from practice.judgelib.text import Text
from practice.web import work
from practice.web.errors import ApiError
from practice.web.problems import Shelf
from practice.web.queue import FairQueue, Job, Reader
from practice.web.records import Records
from tools.store import Row, StoreError

IDLE_SECONDS = 3.0
STOP_SECONDS = 0.3
FINISHED = 500
ID = re.compile(r"[0-9a-f]{32}")

# An event of a job's stream: its name and its data.
Event = tuple[str, dict[str, Any]]


class Desk:
    """Takes jobs, has them judged by `workers` threads, and says how they stand."""

    def __init__(
        self, shelf: Shelf, records: Records, level: int, workers: int, queue: FairQueue
    ) -> None:
        self._shelf = shelf
        self._records = records
        self._level = level
        self._queue = queue
        self._lock = threading.Lock()
        self._entering = threading.Lock()
        self._jobs: dict[str, Job] = {}  # waiting or being judged
        self._finished: OrderedDict[str, Job] = OrderedDict()  # the latest, with their results
        self._listeners: dict[str, set[Callable[[], None]]] = {}
        self._workers = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]

    def start(self) -> None:
        """Take up what a dead server left, and begin."""
        self._adopt()
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        """Begin no more jobs and end all streams; does not wait. Safe to call twice.

        What waits, or does not come to its end, keeps its row for the next server.
        """
        self._queue.close()
        with self._lock:
            listeners = [ring for rings in self._listeners.values() for ring in rings]
        for ring in listeners:
            ring()

    def join(self) -> bool:
        """Wait a moment for the workers to end; whether all have."""
        for worker in self._workers:
            if worker.is_alive():
                worker.join(STOP_SECONDS / len(self._workers))
        return not any(worker.is_alive() for worker in self._workers)

    @property
    def stopped(self) -> bool:
        """Whether the server is going."""
        return self._queue.closed

    def count(self) -> dict[str, int]:
        """How many jobs wait and how many are being judged."""
        with self._lock:
            running = sum(job.state == "judging" for job in self._jobs.values())
        return {"queue": len(self._queue), "running": running}

    def submit(self, problem: Problem, source: bytes, reader: Reader) -> str:
        """Queue a submission and return its id; from then on it is not lost. Full, TooSoon."""
        job = Job("", problem.id, source, "submit", reader, sessions.fresh_seed())
        with self._entering:
            self._queue.check(reader, len(source))
            try:
                progress, owner = self._records.progress, self._records.owner
                with sessions.entry(problem, progress):
                    job.id = progress.enqueue(problem.id, source, job.seed, reader.session, owner)
                job.recorded = True
            except StoreError as error:
                job.id = uuid.uuid4().hex
                job.notes.append(Text(error.zh, error.en))
            self._put(job)
        return job.id

    def run(self, problem: Problem, source: bytes, reader: Reader) -> str:
        """Queue a run of the samples and return its id; raises Full."""
        id, seed = uuid.uuid4().hex, sessions.fresh_seed()
        with self._entering:
            self._queue.check(reader, len(source))
            self._put(Job(id, problem.id, source, "run", reader, seed))
        return id

    def state(self, id: str) -> Event:
        """How a job stands, as the event that says so; ApiError 404, StoreError."""
        return self.live(id) or self._stored(id)

    def live(self, id: str) -> Event | None:
        """`state` as far as memory knows; never waits."""
        with self._lock:
            job = self._jobs.get(id) or self._finished.get(id)
        if job is None:
            return None
        if job.result is not None:
            return "verdict", job.result
        if job.state == "judging":
            return "judging", {}
        return "queued", {"position": self._queue.position(job)}

    @contextlib.contextmanager
    def listening(self, id: str, ring: Callable[[], None]) -> Iterator[None]:
        """Have `ring` called, from any thread, whenever the state of a job changes."""
        with self._lock:
            self._listeners.setdefault(id, set()).add(ring)
        try:
            yield
        finally:
            with self._lock:
                rings = self._listeners[id]
                rings.discard(ring)
                if not rings:
                    del self._listeners[id]

    def _put(self, job: Job) -> None:
        with self._lock:
            self._jobs[job.id] = job
        self._queue.put(job)

    def _stored(self, id: str) -> Event:
        row = self._records.progress.submission(id) if ID.fullmatch(id) else None
        if row and row["verdict"]:
            return "verdict", work.shown(row["problem"], "submit", json.loads(row["verdict"]), [])
        if row and row["state"] == "queued":
            return "queued", {"position": None}  # another living server has it
        raise ApiError(404, "没有这次判题；请再运行一次", "no such job; run it again")

    def _adopt(self) -> None:
        with contextlib.suppress(StoreError):
            for row in self._records.adopt():
                self._put(_job_of(row))

    def _work(self) -> None:
        with work.Boxes(self._level) as boxes:
            while not self._queue.closed:
                job = self._queue.take(IDLE_SECONDS)
                if job is not None:
                    self._ring(job.id)
                    self._finish(job, work.result_of(job, self._shelf, self._records, boxes))
                elif not self._queue.closed:
                    # Nobody waits: not at the start, when the page itself is being loaded.
                    boxes.warm(self._shelf.needs_torch)
                    self._adopt()

    def _finish(self, job: Job, result: dict[str, Any]) -> None:
        with self._lock:
            job.result, job.state, job.source = result, "verdict", b""
            self._jobs.pop(job.id, None)
            self._finished[job.id] = job
            if len(self._finished) > FINISHED:
                self._finished.popitem(last=False)
        self._ring(job.id)

    def _ring(self, id: str) -> None:
        with self._lock:
            rings = list(self._listeners.get(id, ()))
        for ring in rings:
            ring()


def _job_of(row: Row) -> Job:
    source = row["source"].encode("utf-8", "replace")
    reader = Reader("", row["session"] or "")  # the store keeps no address
    return Job(row["id"], row["problem"], source, "submit", reader, row["seed"], recorded=True)
