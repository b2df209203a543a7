"""Chapter 10: whatever comes, in whatever order, everybody gets what it gets alone.

Requests arrive at random steps, some begin alike, some are aborted, late or lost with a pass that
fails, on engines that hold few of them. The laws are looked at after every step.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
import torch

from fake_engine import BUDGETED, FakeEngine, budget, fake_engine
from minisgl.core import Batch, SamplingParams
from minisgl.scheduler.lifecycle import State
from minisgl.scheduler.prefill import MIN_SHARED_TOKENS
from minisgl.scheduler.request import Request
from minisgl.scheduler.scheduler import Scheduler
from minisgl.scheduler.trace import Trace

NUM_WORKLOADS, NUM_GROUPS = 200, 8
LONGEST = 12  # of the answers
END = 4  # the token by which the model ends an answer; it has eight


class Failure(Exception):
    """What no code of the engine raises."""


class Workload:
    """A scheduler, and requests that come to it at random."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.page_size = chance.choice([1, 2, 3, 4, 8, 16])
        num_pages = chance.randint(4, 48)
        self.engine = fake_engine(
            letters=8,
            page_size=self.page_size,
            num_pages=num_pages,
            max_seq_len=min(num_pages * self.page_size + 1, 80),
            max_running_reqs=chance.randint(1, 6),
            **budget(chance.choice([1, 3, 8, 20, 256])),
        )
        self._forward_batch = self.engine.forward_batch
        self.engine.forward_batch = self._unreliable
        self.is_reliable = False
        self.scheduler = Scheduler(self.engine, frozenset({END}))
        self.scheduler.trace = self.trace = Trace()
        self.requests: list[Request] = []
        self.now = 0.0
        self._beginnings = [self._letters(60) for _ in range(2)]

    def run(self) -> None:
        """Let requests come for a while, then let all of them end; look after every step."""
        for _ in range(30):
            for _ in range(self.chance.choice([0, 0, 1, 2])):
                self._add()
            if self.requests and self.chance.random() < 0.1:
                self.scheduler.abort(self.chance.randrange(len(self.requests) + 2))
            self.now += self.chance.choice([0.0, 0.5, 1.0])
            self._step()
        self.is_reliable = True
        # Between two admissions all who run end, at the latest. A prompt may come token by token.
        longest = (max(len(one.input_ids) for one in self.requests) if BUDGETED else 1) + LONGEST
        for _ in range((len(self.requests) + 1) * longest):
            if all(request.finish_reason for request in self.requests):
                break
            self._step()
        self._check_ends()

    def _letters(self, length: int) -> list[int]:
        return [5 + self.chance.randrange(2) for _ in range(length)]

    def _add(self) -> None:
        chance, room = self.chance, self.engine.max_seq_len
        num_tokens = chance.randint(1, min(LONGEST, room - 1))
        prompt = self._letters(chance.randint(1, 6))
        if chance.random() < 0.5:
            prompt = chance.choice(self._beginnings)[: chance.choice([8, 33, 60])] + prompt
        limits: dict[str, Any] = {
            "timeout": chance.choice([None, None, 8.0]),
            "queue_timeout": chance.choice([None, 4.0]),
        }
        params = SamplingParams(max_tokens=num_tokens, ignore_eos=chance.random() < 0.7)
        uid = len(self.requests)
        request = Request(uid, prompt[: room - num_tokens], num_tokens, params, **limits)
        self.requests.append(request)
        self.scheduler.add(request)

    def _unreliable(self, batch: Batch) -> Any:
        output = self._forward_batch(batch)
        if not self.is_reliable:
            event = self.chance.random()
            if event < 0.03:
                raise Failure
            if event < 0.05:
                raise KeyboardInterrupt
            if event < 0.08 and len(output.next_tokens):
                output.next_tokens[self.chance.randrange(len(output.next_tokens))] = -1
        return output

    def _step(self) -> None:
        waiting = [request for request in self.requests if request.state is State.WAITING]
        prefilling = [request for request in self.requests if request.state is State.PREFILL]
        with suppress(KeyboardInterrupt):
            self.scheduler.step(self.now)
        self.scheduler.check_invariants()
        self._check_order(waiting, prefilling)

    def _check_order(self, waiting: list[Request], prefilling: list[Request]) -> None:
        """Whoever was overtaken in this step would have computed what another one computed."""
        begun = [request for request in waiting if hasattr(request, "req")]
        for request in waiting:
            if request.state is State.WAITING and begun and begun[-1].uid > request.uid:
                before = prefilling + [one for one in begun if one.uid < request.uid]
                shared = max(num_shared(one.input_ids, request.input_ids) for one in before)
                assert shared // self.page_size * self.page_size >= MIN_SHARED_TOKENS

    def _check_ends(self) -> None:
        for request in self.requests:
            answer = self.engine.answer(request.input_ids, request.output_len)
            reason = "length"
            if not request.sampling_params.ignore_eos and END in answer:
                answer, reason = answer[: answer.index(END) + 1], "stop"
            assert request.token_ids == answer[: len(request.token_ids)]
            if request.state is State.FINISHED:
                assert (request.token_ids, request.finish_reason) == (answer, reason)
            else:
                assert request.state is State.ABORTED and len(request.token_ids) < len(answer)
                assert request.finish_reason in ("abort", "timeout", "error")
            assert (request.error is None) == (request.finish_reason != "error")
        assert_nothing_is_held(self.scheduler, self.engine)


def num_shared(one: list[int], other: list[int]) -> int:
    """How many tokens two prompts have in common at the beginning."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def assert_nothing_is_held(scheduler: Scheduler, engine: FakeEngine) -> None:
    """Every row and, one after the other, every page can be used."""
    length = min(engine.num_pages * engine.config.page_size, engine.max_seq_len - 1)
    params = SamplingParams(max_tokens=1, ignore_eos=True)
    whole = Request(10**6, [2] * length, 1, params)
    scheduler.add(whole)
    for _ in range(length if BUDGETED else 1):
        scheduler.step()
    assert whole.finish_reason == "length"
    num_rows = min(engine.config.max_running_reqs, engine.num_pages)
    small = [Request(n, [n], 1, params) for n in range(9, 9 + num_rows)]
    for request in small:
        scheduler.add(request)
    for _ in range(num_rows if BUDGETED else 1):
        scheduler.step()
    assert all(request.finish_reason for request in small)
    scheduler.check_invariants()


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("group", range(NUM_GROUPS))
def test_everybody_gets_what_it_gets_alone_and_everything_comes_back(group: int) -> None:
    reasons: Counter[str | None] = Counter()
    for seed in range(group, NUM_WORKLOADS, NUM_GROUPS):
        workload = Workload(seed)
        workload.run()
        reasons.update(request.finish_reason for request in workload.requests)
    assert set(reasons) == {"stop", "length", "abort", "timeout", "error"}
    assert min(reasons.values()) >= 10


def digest() -> str:
    """A hash of all that the schedulers of some workloads did."""
    events: list[Any] = []
    for seed in range(5):
        workload = Workload(seed)
        workload.run()
        events += [{**event, "time": None} for event in workload.trace.events]
    return hashlib.sha256(repr(events).encode()).hexdigest()


def test_a_trace_is_the_same_in_another_process() -> None:
    """There, strings and sets have another order."""
    code = "import test_ch10_workloads; print(test_ch10_workloads.digest())"
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "12345"}
    words = [sys.executable, "-c", code]
    run = subprocess.run(
        words, env=os.environ | paths, capture_output=True, text=True, check=False, timeout=100
    )
    assert run.stdout.strip() == digest(), run.stderr
