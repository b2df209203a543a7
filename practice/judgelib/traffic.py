"""The judge's end of one job: answers, output, time and memory watched in one loop."""

import contextlib
import select
import socket
import struct
import time
from typing import Any, Literal

from practice.judgelib import frames
from practice.judgelib.inbox import keeper
from practice.judgelib.outputs import Outputs
from practice.judgelib.sandbox.process import ask_for_sender, memory_of, receive_with_sender

LOOK_SECONDS = 0.02  # how often memory is looked at
START_SECONDS = 10.0  # for a child to be forked and to lock itself in
GRACE_SECONDS = 0.5  # for a program to end once it has nothing left to do
BURIAL_SECONDS = 2.0  # for the keeper to say that a killed child is gone
ALL_ANSWERS_BYTES = 64 << 20
_HELLO = struct.Struct(">QQ")


Ended = Literal[
    "done",  # every case was answered
    "exited",  # the process ended by itself before that
    "killed",  # by a signal: a crash, or its own hand
    "violation",  # it made a forbidden system call
    "timeout",
    "memory",
    "output",
    "protocol",  # what it sent was no answer
    "internal",  # the box failed, not the submission
]


class Stopped(Exception):
    """A job has ended before its time; `ended` and `detail` as in `JobResult`."""

    def __init__(self, ended: Ended, detail: str = "") -> None:
        super().__init__(ended, detail)
        self.ended: Ended = ended
        self.detail = detail


class Traffic:
    """Sends frames to one child and reads its answers, while everything else is watched."""

    def __init__(self, control: socket.socket, wall_s: float, output_bytes: int, memory_mb: int):
        self.exit: dict[str, Any] | None = None
        self.started_kib = 0
        self.started = self.deadline = 0.0  # once the child is there
        self._wall_s = wall_s
        self._control = control
        self._memory_bytes = memory_mb << 20
        self._answer_left = ALL_ANSWERS_BYTES
        self._pid: int | None = None
        self._own_at_start = 0
        self._result, self._their_result = socket.socketpair()
        ask_for_sender(self._result)
        self._outputs = Outputs(output_bytes)
        self._poll = select.poll()
        for number in [*self._outputs.open, control.fileno()]:
            self._poll.register(number, select.POLLIN)
        self._keeper_there = True

    def begin(self, caps: dict[str, int]) -> None:
        """Hand the child's ends to the keeper and wait for the child's first words."""
        try:
            ends = [self._their_result.fileno(), *self._outputs.theirs]
            socket.send_fds(self._control, [keeper.JOB], ends)
            frames.send(self._control, caps)
        except OSError as error:
            raise Stopped("internal", f"the keeper has gone: {error}") from error
        self._their_result.close()
        self._outputs.close_theirs()
        self._result.setblocking(False)
        self._wait(select.POLLIN, time.monotonic() + START_SECONDS)
        hello, pid = receive_with_sender(self._result, _HELLO.size)
        if len(hello) != _HELLO.size:
            self._wait_for_exit(GRACE_SECONDS)
            raise Stopped("internal", "the child did not start")
        own_pid, self.started_kib = _HELLO.unpack(hello)
        self._pid = pid or own_pid
        self._own_at_start = memory_of(self._pid)[1]
        self.started = time.monotonic()
        self.deadline = self.started + self._wall_s

    def send(self, frame: bytes, deadline: float) -> None:
        """Write a frame to the child; raises Stopped."""
        view = memoryview(frame)
        while view:
            self._wait(select.POLLOUT, deadline)
            try:
                view = view[self._result.send(view) :]
            except BlockingIOError:
                continue
            except OSError:  # the child has closed its end
                self._gone()

    def receive(self, limits: frames.FrameLimits, deadline: float) -> Any:
        """Return the next answer; raises Stopped."""

        def fill(buffer: memoryview) -> None:
            self._answer_left -= len(buffer)
            if self._answer_left < 0:
                raise Stopped("output", f"answers of more than {ALL_ANSWERS_BYTES >> 20} MiB")
            while buffer:
                self._wait(select.POLLIN, deadline)
                try:
                    count = self._result.recv_into(buffer)
                except BlockingIOError:
                    continue
                except ConnectionError:
                    count = 0
                if count == 0:
                    self._gone()
                buffer = buffer[count:]

        try:
            return frames.read(fill, limits)
        except frames.FrameError as error:
            raise Stopped("protocol", f"an answer that is no frame: {error}") from error

    def expect_silence(self) -> None:
        """Raise Stopped where the child has gone, or has said what nobody asked for."""
        try:
            if self._result.recv(1, socket.MSG_PEEK):
                raise Stopped("protocol", "an answer before its case was given")
        except BlockingIOError:
            return
        except ConnectionError:
            pass
        self._gone()

    def finish(self) -> None:
        """Tell the child that all is done and let it end; raises Stopped for too much output."""
        with contextlib.suppress(OSError):
            self._result.shutdown(socket.SHUT_WR)
        self._wait_for_exit(GRACE_SECONDS)
        self._outputs.read_all()
        if self._outputs.overflowed:
            raise Stopped("output")

    def kill(self) -> bool:
        """End the child if it still runs; False where the keeper does not confirm its end."""
        if self.exit is None:
            with contextlib.suppress(OSError):
                self._control.sendall(keeper.KILL)
            self._wait_for_exit(BURIAL_SECONDS)
        return self.exit is not None

    def mark(self) -> None:
        """A case has been answered: what comes on stdout from here on is of the next."""
        self._outputs.mark()

    def close(self) -> tuple[list[str], str]:
        """Close every end and return what was printed to stdout, by case, and to stderr."""
        self._their_result.close()
        self._result.close()
        return self._outputs.close()

    def _wait(self, event: int, deadline: float) -> None:
        """Return once `event` may be true of the result socket; raises Stopped.

        Meanwhile output is read, and the time, the memory and the child's life are watched.
        """
        number = self._result.fileno()
        self._poll.register(number, event)
        try:
            while True:
                now = time.monotonic()
                if now >= deadline:
                    raise Stopped("timeout")
                ready = self._poll.poll(1000 * min(LOOK_SECONDS, deadline - now))
                for other, _ in ready:
                    if other != number:
                        self._serve(other)
                if any(other == number for other, _ in ready):
                    return
                if self.exit is not None:
                    self._gone()
                self._look_at_memory()
        finally:
            self._poll.unregister(number)

    def _serve(self, number: int) -> None:
        """Read what has come over another channel than the result's; raises Stopped."""
        if number != self._control.fileno():
            self._outputs.read(number)
            if number not in self._outputs.open:
                self._poll.unregister(number)
            if self._outputs.overflowed:
                raise Stopped("output")
            return
        self._poll.unregister(number)
        self._keeper_there = False
        try:
            self.exit = frames.recv(self._control, deadline=time.monotonic() + BURIAL_SECONDS)
        except (OSError, EOFError, frames.FrameError) as error:
            raise Stopped("internal", f"the keeper has gone: {error}") from error

    def _look_at_memory(self) -> None:
        if self._pid is not None:
            used = memory_of(self._pid)[1] - self._own_at_start
            if used > self._memory_bytes:
                raise Stopped("memory", f"more than {self._memory_bytes >> 20} MiB")

    def _gone(self) -> None:
        """The child answers no more: raise Stopped with how it ended."""
        self._wait_for_exit(GRACE_SECONDS)
        if self.exit is None:
            raise Stopped("protocol", "the program closed its channel to the judge")
        raise Stopped("exited")

    def _wait_for_exit(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.exit is None and self._keeper_there:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            for number, _ in self._poll.poll(1000 * left):
                with contextlib.suppress(Stopped):
                    self._serve(number)
