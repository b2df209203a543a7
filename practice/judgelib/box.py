"""The box: hands one job to a confined process and returns what came of it.

Nothing that a submission does changes more than its own `JobResult`. Exit codes, prints and
exceptions are reported, never believed: only an answer that the judge compares counts.
"""

import contextlib
import socket
import threading
from collections.abc import Iterable
from typing import Any

from practice.judgelib.conversation import Conversation, JobResult, Limits
from practice.judgelib.sandbox import levels
from practice.judgelib.sandbox.levels import SandboxError
from practice.judgelib.sandbox.process import BoxProcess
from practice.judgelib.traffic import Ended, Stopped, Traffic

__all__ = ["Box", "Ended", "JobResult", "Limits", "SandboxError"]

# A keeper is thrown away after this many jobs even when nothing was wrong.
JOBS_PER_KEEPER = 100
# Address space for what the box itself still does: stacks, buffers of frames.
HEADROOM_BYTES = 32 << 20


class Box:
    """A place to run submissions, one at a time; a context manager.

    level: 3, 2 or 0; None takes the best that this machine gives.
    strict: a fresh box for every job, at the price of loading torch each time.
    torch: load torch once, ahead of all jobs.

    Starting does not wait: the box gets ready while the judge prepares the cases.
    """

    def __init__(self, level: int | None = None, strict: bool = False, torch: bool = True) -> None:
        self.level = levels.best() if level is None else level
        self.strict = strict
        why_not = levels.obstacle(self.level)
        if why_not is not None:
            raise SandboxError(
                f"这里用不了沙箱 {self.level} 级：{why_not.zh}",
                f"level {self.level} is not to be had here: {why_not.en}",
            )
        self._torch = torch
        self._lock = threading.Lock()
        self._keeper: socket.socket | None = None
        self._jobs = 0
        self._process: BoxProcess | None = self._new_process()

    def __enter__(self) -> "Box":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process of the box; safe to call twice."""
        with self._lock:
            self._throw_away()

    def run(self, job: dict[str, Any], cases: Iterable[Any], limits: Limits) -> JobResult:
        """Run one job over its cases and return what came of it.

        job: `{"files": {path: text}, "entry": [module, name], "torch": bool}`; `driver.py` among
        the files answers cases by its `run(case)`, else the entry is called with the case's
        `args` and `kwargs`. With `"absent": [name]` these functions of torch fail when called.
        Raises SandboxError where no box can be had, and FrameError where the job or a case is not
        plain.
        """
        if job["torch"]:
            # Answers may hold tensors: the judge's own loading must not be on the job's clock.
            import torch  # noqa: F401
        with self._lock:
            traffic = self._begin(limits)
            run = Conversation(traffic, limits)
            try:
                run.hold(job, cases)
            finally:
                buried = traffic.kill()
                out, err = traffic.close()
                self._settle(buried, clean=run.clean())
            return run.result(out, err)

    def _begin(self, limits: Limits) -> Traffic:
        """Return the traffic with a child that waits for its job; a dead box is made anew once."""
        for last in (False, True):
            control = self._ready_keeper()
            traffic = Traffic(control, limits.wall_s, limits.output_bytes, limits.memory_mb)
            try:
                traffic.begin(self._caps(limits))
                return traffic
            except Stopped as stopped:
                _, said = traffic.close()
                self._throw_away()
                if last:
                    why = f"{stopped.detail} {said[-200:]}".strip()
                    zh, en = f"沙箱里启动不了进程：{why}", f"no process starts in the box: {why}"
                    raise SandboxError(zh, en) from stopped
        raise AssertionError("unreachable")

    def _caps(self, limits: Limits) -> dict[str, int]:
        assert self._process is not None
        base = self._process.address_bytes
        room = base + HEADROOM_BYTES + (limits.memory_mb << 20) if base else 0
        return {"cpu_s": limits.cpu_s, "address_bytes": room}

    def _new_process(self) -> BoxProcess:
        return BoxProcess(self.level, self._torch)

    def _ready_keeper(self) -> socket.socket:
        """Return a socket to a keeper that listens; a box that has died is made anew once."""
        for last in (False, True):
            try:
                if self._process is None:
                    self._process = self._new_process()
                if self._keeper is None:
                    self._keeper = self._process.new_keeper()
                    self._jobs = 0
                if self._jobs == 0:
                    self._process.greet(self._keeper)
                return self._keeper
            except SandboxError:
                self._throw_away()
                if last:
                    raise
        raise AssertionError("unreachable")

    def _settle(self, buried: bool, clean: bool) -> None:
        """After a job: keep the keeper, take a fresh one, or a whole fresh box."""
        self._jobs += 1
        if self.strict or not buried:
            self._throw_away()
            self._process = self._new_process()
        elif not clean or self._jobs >= JOBS_PER_KEEPER:
            self._drop_keeper()
            # At once: it is there before the next job asks for it.
            with contextlib.suppress(SandboxError):
                assert self._process is not None
                self._keeper = self._process.new_keeper()
                self._jobs = 0

    def _drop_keeper(self) -> None:
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def _throw_away(self) -> None:
        self._drop_keeper()
        if self._process is not None:
            self._process.kill()
            self._process = None
