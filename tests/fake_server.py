"""The scheduler on a fake engine, from chapter 10 on: requests that come, fail and end.

`Server` looks at every row and page after every step, and compares answers with what each request
gets alone.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from fake_engine import fake_engine
from minisgl.core import Batch, SamplingParams
from minisgl.engine.config import EngineConfig
from minisgl.kvcache.manager import CacheManager
from minisgl.scheduler.lifecycle import State
from minisgl.scheduler.prefill import PrefillManager
from minisgl.scheduler.request import Request
from minisgl.scheduler.scheduler import Scheduler
from minisgl.scheduler.table import TableManager

HAS_POLICIES = find_spec("minisgl.scheduler.policy") is not None  # from chapter 13 on
HAS_OVERLAP = hasattr(EngineConfig, "overlaps")  # from chapter 14 on


class Late:
    """A worker that computes a pass as late as can be: when somebody waits for it."""

    class _Future(Future[Any]):
        def __init__(self, worker: Late, compute: Callable[[], Any]) -> None:
            super().__init__()
            self.worker, self.compute = worker, compute

        def result(self, timeout: float | None = None) -> Any:
            self.worker.compute_until(self)
            return super().result(timeout)

    def __init__(self) -> None:
        self._queue: deque[Late._Future] = deque()

    def submit(self, compute: Callable[[], Any]) -> Future[Any]:
        self._queue.append(future := Late._Future(self, compute))
        return future

    def wait(self) -> None:
        self.compute_until(None)

    def compute_until(self, future: Late._Future | None) -> None:
        while self._queue and not (future and future.done()):
            first = self._queue[0]
            try:
                first.set_result(first.compute())
            except BaseException as error:  # as a thread does
                first.set_exception(error)
            self._queue.popleft()


def overlapped(scheduler: Scheduler, worker: str) -> None:
    """Have a scheduler with overlap compute "early", when a pass is launched, or "late".

    Between the two lies whatever a device or a thread may do, and both are the same in every run.
    """
    workers = import_module("minisgl.engine.worker")
    any_scheduler: Any = scheduler
    any_scheduler._worker = Late() if worker == "late" else workers.Worker(in_thread=False)


def apart(uid: int, length: int = 5) -> list[int]:
    """A prompt that begins like no other."""
    return [100 + uid, *range(3, 2 + length)]


class Server:
    """The scheduler and its fake engine; every row and page is looked at after every step."""

    def __init__(
        self, letters: int = 380, eos_ids: Sequence[int] = (), worker: str = "", **options: Any
    ) -> None:
        """With a `worker`, "early", "late" or "thread", steps overlap."""
        options = {"page_size": 4, "num_pages": 40, "max_running_reqs": 4} | options
        options |= {"overlap": True} if worker else {}
        self.engine = fake_engine(letters, **options)
        self.scheduler = Scheduler(self.engine, frozenset(eos_ids))
        if worker in ("early", "late"):
            overlapped(self.scheduler, worker)
        self.uids = itertools.count()

    def add(
        self, prompt: list[int], output_len: int = 1, limits: Any = None, **params: Any
    ) -> Request:
        sampling = SamplingParams(max_tokens=output_len, **params)
        request = Request(next(self.uids), prompt, output_len, sampling, **(limits or {}))
        self.scheduler.add(request)
        return request

    def step(self, times: int = 1, now: float = 0.0) -> None:
        for _ in range(times):
            self.scheduler.step(now)
            self.scheduler.check_invariants()

    def drain(self, *requests: Request) -> None:
        """Step until all have ended; each must have the answer that it gets alone."""
        for _ in range(1000):  # a scheduler that gets nowhere must fail, and not run for ever
            if all(request.finish_reason for request in requests):
                break
            self.step()
        for request in requests:
            assert request.token_ids == self.answer(request)
            assert (request.finish_reason, request.state) == ("length", State.FINISHED)

    def answer(self, request: Request) -> list[int]:
        return self.engine.answer(request.input_ids, request.output_len)

    def passes(self) -> list[list[int]]:
        """Who was in each pass."""
        return [[*batch] for batch in self.engine.batches]

    def is_empty(self) -> bool:
        """Whether the whole pool fits one request."""
        length = self.engine.num_pages * self.engine.config.page_size
        length = min(length, self.engine.max_seq_len - 1)
        self.drain(request := self.add([2] * length))
        return request.num_cached_tokens == 0


def prefill_manager(table: TableManager, cache: CacheManager, page_size: int) -> PrefillManager:
    """One that serves in the order of arrival, as all do that know no other."""
    policies: list[Any] = []
    if HAS_POLICIES:
        policies.append(import_module("minisgl.scheduler.policy").FirstComeFirstServed())
    return PrefillManager(table, cache, page_size, *policies)


class Failure(Exception):
    """What no code of the engine raises."""


@contextmanager
def passes_by(engine: Any, forward_batch: Callable[[Batch], Any]) -> Iterator[None]:
    """In a `with` block, passes are computed in another way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "forward_batch", forward_batch)
        yield


@contextmanager
def failing(server: Server, error: BaseException) -> Iterator[None]:
    """In a `with` block, passes fail after they have written their KV."""
    original = server.engine.forward_batch

    def fail(batch: Batch) -> Any:
        original(batch)
        raise error

    with passes_by(server.engine, fail):
        yield


@contextmanager
def without_scores(server: Server, *uids: int) -> Iterator[None]:
    """In a `with` block, these requests' rows have logits that are not numbers."""
    original = server.engine.forward_batch

    def forward_batch(batch: Batch) -> Any:
        output = original(batch)
        sampled = [req for req in batch.reqs if req.device_len >= len(req.input_ids)]
        for row, req in enumerate(sampled):
            if req.uid in uids:
                output.next_tokens[row] = -1
        return output

    with passes_by(server.engine, forward_batch):
        yield
