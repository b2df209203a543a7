"""One job from its first frame to its result: who says what, and what an early end means."""

import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from practice.judgelib import frames
from practice.judgelib.traffic import Ended, Stopped, Traffic


@dataclass(frozen=True)
class Limits:
    """What a job may use. Seconds, MiB beyond the empty process, bytes of stdout and stderr."""

    wall_s: float
    cpu_s: int
    memory_mb: int
    output_bytes: int
    case_s: float


@dataclass(frozen=True)
class JobResult:
    """What came of a job.

    `answers`: one per case answered, in order: `{"ok": value}` or
    `{"error": {"type", "message", "traceback"}}`. Code that cannot be imported gives one error.
    `printed`: what came on stdout during each of them, and after the last.
    """

    answers: list[Any]
    ended: Ended
    detail: str
    stdout: str
    stderr: str
    wall_s: float
    cpu_s: float
    peak_mb: float
    printed: Sequence[str] = ()


class Conversation:
    """The judge's side of one job, case by case."""

    def __init__(self, traffic: Traffic, limits: Limits) -> None:
        self._traffic = traffic
        self._limits = limits
        self._answers: list[Any] = []
        self._ended: Ended = "internal"
        self._detail = ""

    def hold(self, job: dict[str, Any], cases: Iterable[Any]) -> None:
        """Give the job and its cases, until all are answered or something ends it."""
        limits = frames.answer_limits(job["torch"])
        traffic = self._traffic
        frame = frames.encode(job, frames.INPUT)
        try:
            traffic.send(frame, traffic.deadline)
            for case in cases:
                if self._answers:
                    traffic.expect_silence()
                deadline = min(traffic.deadline, time.monotonic() + self._limits.case_s)
                traffic.send(frames.encode(case, frames.INPUT), deadline)
                self._answers.append(_checked(traffic.receive(limits, deadline)))
                traffic.mark()
            traffic.finish()
            self._ended = "done"
        except Stopped as stopped:
            self._ended, self._detail = stopped.ended, stopped.detail

    def clean(self) -> bool:
        """Whether the child ended as it should and left nothing behind."""
        ending = self._traffic.exit
        if ending is None or self._ended != "done":
            return False
        return (ending["status"], ending["left"]) == (0, 0)

    def result(self, printed: list[str], stderr: str) -> JobResult:
        """Return what came of the job, once the child is gone."""
        ending = self._traffic.exit or {"status": 0, "cpu_s": 0.0, "peak_kib": 0}
        ended, detail = self._ended, self._detail
        if ended == "exited":
            ended, detail = _explain(ending["status"], ending["cpu_s"], self._limits)
        grown_kib = max(0, ending["peak_kib"] - self._traffic.started_kib)
        return JobResult(
            answers=self._answers,
            ended=ended,
            detail=detail,
            stdout="".join(printed),
            printed=printed,
            stderr=stderr,
            wall_s=time.monotonic() - self._traffic.started,
            cpu_s=ending["cpu_s"],
            peak_mb=grown_kib / 1024,
        )


def _checked(answer: Any) -> Any:
    """Return an answer of the right form; the child's own code makes no other."""
    if type(answer) is dict and len(answer) == 1:
        if "ok" in answer:
            return answer
        error = answer.get("error")
        wanted = {"type", "message", "traceback"}
        if (
            type(error) is dict
            and error.keys() == wanted
            and set(map(type, error.values())) == {str}
        ):
            return answer
    raise Stopped("protocol", "an answer that is neither a result nor an error")


def _explain(status: int, cpu_s: float, limits: Limits) -> tuple[Ended, str]:
    """Return what the exit status of a process that ended too early means."""
    if status >= 0:
        return "exited", f"exit status {status}"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
    if name == "SIGSYS":
        return "violation", "a forbidden system call"
    if name == "SIGXCPU" or (name == "SIGKILL" and cpu_s >= limits.cpu_s):
        return "timeout", f"more than {limits.cpu_s} s of processor time"
    return "killed", name
