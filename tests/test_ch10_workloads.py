"""Chapter 10: whatever comes, in whatever order, everybody gets what it gets alone.

Requests arrive at random steps, some begin alike, some are aborted, late or lost with a pass that
fails, on engines that hold few of them. The laws are looked at after every step. Where a step of
the book can do more, that is drawn at random too: budgets of tokens, policies, guesses of how long
an answer will be, most of them too low, and passes that are computed beside the steps.
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
from fake_server import HAS_OVERLAP, HAS_POLICIES, overlapped
from minisgl.core import Batch, SamplingParams
from minisgl.scheduler.lifecycle import State
from minisgl.scheduler.prefill import MIN_SHARED_TOKENS
from minisgl.scheduler.request import Request
from minisgl.scheduler.scheduler import Scheduler
from minisgl.scheduler.trace import Trace

NUM_WORKLOADS, NUM_GROUPS = 200, 8
LONGEST = 20  # of the answers
END = 4  # the token by which the model ends an answer; it has eight


class Failure(Exception):
    """What no code of the engine raises."""


class Workload:
    """A scheduler, and requests that come to it at random."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.page_size = chance.choice([1, 2, 3, 4, 8, 16])
        num_pages = chance.randint(4, chance.choice([12, 48]))
        self.policy = chance.choice(["fcfs", "fcfs", "lpm"]) if HAS_POLICIES else "fcfs"
        worker = chance.choice(["", "early", "late"]) if HAS_OVERLAP else ""
        self.num_late = 1 if worker else 0  # how many passes an end is known too late
        self.engine = fake_engine(
            letters=8,
            page_size=self.page_size,
            num_pages=num_pages,
            max_seq_len=min(num_pages * self.page_size + 1, 80),
            max_running_reqs=chance.randint(1, 6),
            **budget(chance.choice([1, 3, 8, 20, 256])),
            **({"schedule_policy": self.policy} if HAS_POLICIES else {}),
            **({"overlap": bool(worker)} if HAS_OVERLAP else {}),
        )
        self._forward_batch = self.engine.forward_batch
        self.engine.forward_batch = self._unreliable
        self.is_reliable = False
        self.scheduler = Scheduler(self.engine, frozenset({END}))
        if worker:
            overlapped(self.scheduler, worker)
        self.scheduler.trace = self.trace = Trace()
        self.guess = chance.choice([0.01, 0.01, None])  # how much of an answer will come
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
        longest += self.num_late
        num_steps = 0
        while not all(request.finish_reason for request in self.requests):
            num_steps += 1
            assert num_steps <= (len(self.requests) + 1 + self.num_retractions()) * longest
            self._step()
        self._check_ends()

    def num_retractions(self) -> int:
        """How often a request had to give its pages back; until chapter 13 none has to."""
        return sum(getattr(request, "num_retractions", 0) for request in self.requests)

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
        event = 1.0 if self.is_reliable else self.chance.random()
        if event < 0.01:
            self.engine.spoil(batch)
            raise Failure
        output = self._forward_batch(batch)
        if not self.is_reliable:
            if event < 0.03:
                raise Failure
            if event < 0.05:
                raise KeyboardInterrupt
            if event < 0.08 and len(output.next_tokens):
                output.next_tokens[self.chance.randrange(len(output.next_tokens))] = -1
        return output

    def _step(self) -> None:
        states = {request: request.state for request in self.requests}
        num_events = len(self.trace.events)
        if HAS_POLICIES and self.guess:  # one that learns nothing
            self.scheduler._prefill.estimate.share = self.guess
        with suppress(KeyboardInterrupt):
            self.scheduler.step(self.now)
        self.scheduler.check_invariants()
        events = self.trace.events[num_events:]
        launches = [event["lengths"] for event in events if event["event"] == "launch"]
        batch = launches[0] if launches else {}
        if BUDGETED:
            num_decoding = sum(states[one] is State.DECODE for one in states if one.uid in batch)
            bound = max(self.engine.config.max_batch_tokens, num_decoding + 1)
            assert sum(end - start for start, end in batch.values()) <= bound
        if self.policy == "fcfs":
            self._check_order(states, batch)
        retracted = {event["uid"] for event in events if event["event"] == "retract"}
        running = {State.PREFILL, State.DECODE}
        kept = {one.uid for one in states if {states[one], one.state} <= running} - retracted
        assert not retracted or max(kept, default=-1) < min(retracted)  # the youngest give way

    def _check_order(self, states: dict[Request, State], batch: dict[int, Any]) -> None:
        """Whoever was overtaken in this step would have computed what another one computed."""
        waiting = [one for one in self.requests if one.state is State.WAITING]
        begun = [one for one in states if states[one] is State.WAITING and one.uid in batch]
        prefilling = [one for one in states if states[one] is State.PREFILL]
        for request in waiting:
            if begun and begun[-1].uid > request.uid:
                before = prefilling + [one for one in begun if one.uid < request.uid]
                shared = max(num_shared(known_ids(one), known_ids(request)) for one in before)
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
            assert not isinstance(request.error, AssertionError), request.error  # of the engine
        assert_nothing_is_held(self.scheduler, self.engine, self.num_late)


def known_ids(request: Request) -> list[int]:
    return request.input_ids + request.token_ids


def num_shared(one: list[int], other: list[int]) -> int:
    """How many tokens two prompts have in common at the beginning."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def assert_nothing_is_held(scheduler: Scheduler, engine: FakeEngine, num_late: int) -> None:
    """Every row and, one after the other, every page can be used."""
    length = min(engine.num_pages * engine.config.page_size, engine.max_seq_len - 1)
    params = SamplingParams(max_tokens=1, ignore_eos=True)
    whole = Request(10**6, [2] * length, 1, params)
    scheduler.add(whole)
    for _ in range((length if BUDGETED else 1) + 2 * num_late):  # what it needs may be in flight
        scheduler.step()
    assert whole.finish_reason == "length"
    num_rows = min(engine.config.max_running_reqs, engine.num_pages)
    small = [Request(n, [n], 1, params) for n in range(9, 9 + num_rows)]
    for request in small:
        scheduler.add(request)
    for _ in range((num_rows if BUDGETED else 1) + num_late):
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
    num_retractions = 0
    for seed in range(group, NUM_WORKLOADS, NUM_GROUPS):
        workload = Workload(seed)
        workload.run()
        reasons.update(request.finish_reason for request in workload.requests)
        num_retractions += workload.num_retractions()
    assert set(reasons) == {"stop", "length", "abort", "timeout", "error"}
    assert min(reasons.values()) >= 10
    assert not HAS_POLICIES or num_retractions >= 20


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
