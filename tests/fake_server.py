"""The scheduler on a fake engine, from chapter 10 on: requests that come, fail and end.

`Server` looks at every row and page after every step, and compares answers with what each request
gets alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from fake_engine import fake_engine
from minisgl.core import Batch, SamplingParams
from minisgl.scheduler.lifecycle import State
from minisgl.scheduler.request import Request
from minisgl.scheduler.scheduler import Scheduler


def apart(uid: int, length: int = 5) -> list[int]:
    """A prompt that begins like no other."""
    return [100 + uid, *range(3, 2 + length)]


class Server:
    """The scheduler and its fake engine; every row and page is looked at after every step."""

    def __init__(self, letters: int = 380, eos_ids: Sequence[int] = (), **options: Any) -> None:
        options = {"page_size": 4, "num_pages": 40, "max_running_reqs": 4} | options
        self.engine = fake_engine(letters, **options)
        self.scheduler = Scheduler(self.engine, frozenset(eos_ids))
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
        sampled = [req for req in batch.reqs if req.device_len >= req.prompt_len]
        for row, req in enumerate(sampled):
            if req.uid in uids:
                output.next_tokens[row] = -1
        return output

    with passes_by(server.engine, forward_batch):
        yield
