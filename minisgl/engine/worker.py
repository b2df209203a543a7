"""Where passes are computed: at once, or while the scheduler prepares the next one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

from minisgl.engine.engine import ForwardOutput
from minisgl.engine.logprobs import TokenLogprob, to_host

T = TypeVar("T")


class Worker:
    """Computes passes in the order in which they come.

    A GPU queues what it is given and goes on by itself. On a CPU a pass is done when `submit`
    returns, or with `in_thread` is computed by a thread, the only one that enters torch then: two
    that do take the cores from each other.
    """

    def __init__(self, in_thread: bool) -> None:
        self._thread = ThreadPoolExecutor(1, "compute") if in_thread else None

    def submit(self, compute: Callable[[], T]) -> Future[T]:
        """What `compute` returns or raises, once it is known."""
        if self._thread is not None:
            return self._thread.submit(compute)
        future: Future[T] = Future()
        try:
            future.set_result(compute())
        except Exception as error:
            future.set_exception(error)
        return future

    def wait(self) -> None:
        """Come back when all that was submitted is done."""
        self.submit(lambda: None).result()


class HostOutput:
    """What a pass yields, on its way to the host: only `read` waits for it."""

    def __init__(self, output: ForwardOutput) -> None:
        self._tokens = to_host(output.next_tokens)
        self._logprobs = output.logprobs and output.logprobs.to_host()
        self._copied = torch.cuda.Event() if output.next_tokens.is_cuda else None
        if self._copied is not None:
            self._copied.record()

    def read(self) -> tuple[torch.Tensor, list[TokenLogprob | None]]:
        """Tokens, int32 `[num_sampled]`, and for each its log probability if it was asked for."""
        if self._copied is not None:
            self._copied.synchronize()
        ids = self._tokens.tolist()
        return self._tokens, self._logprobs.read(ids) if self._logprobs else [None] * len(ids)
