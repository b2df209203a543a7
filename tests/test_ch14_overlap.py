"""Chapter 14: a step is prepared while the one before it is computed.

In the order in which the files build on each other: where passes are computed, what a step knows
and when, what may not be given away meanwhile, requests that end from outside, passes that fail,
Ctrl-C, the trace, `LLM`, real passes, and the command line.

A fake engine computes a pass "early", when it is launched, "late", when somebody waits for it, or
in a "thread": whatever a device does lies between the first two.
"""

from __future__ import annotations

import gc
import io
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

import minisgl.llm.llm
import minisgl.scheduler.scheduler
from device_reads import DEVICE, DeviceReads
from fake_engine import FakeEngine, fake_engine, make_request
from fake_server import Failure, Server, apart, failing, overlapped, passes_by, without_scores
from interrupts import interrupt_at
from minisgl.__main__ import main
from minisgl.core import Batch, SamplingParams
from minisgl.engine.config import EngineConfig
from minisgl.engine.engine import Engine, ForwardOutput
from minisgl.engine.logprobs import BatchLogprobs, TokenLogprob, to_host
from minisgl.engine.worker import HostOutput, Worker
from minisgl.llm import LLM
from minisgl.llm.output import StreamOutput
from minisgl.scheduler.lifecycle import FinishReason, State
from minisgl.scheduler.request import Request
from minisgl.scheduler.scheduler import Scheduler
from minisgl.scheduler.trace import Trace

TinyModel = Callable[[str], Path]
MakeLLM = Callable[..., LLM]

ROOT = Path(__file__).resolve().parents[1]
in_all_ways = pytest.mark.parametrize("worker", ["early", "late", "thread"])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# --- Where a pass is computed -----------------------------------------------------------------


def test_without_a_thread_a_pass_is_done_when_it_is_submitted() -> None:
    done: list[int] = []
    future = Worker(in_thread=False).submit(lambda: done.append(threading.get_ident()))
    assert done == [threading.get_ident()]
    assert future.done() and future.result() is None


def test_with_a_thread_nobody_waits_before_the_result_is_asked_for() -> None:
    go = threading.Event()

    def compute() -> int:
        assert go.wait(10)
        return threading.get_ident()

    future = Worker(in_thread=True).submit(compute)
    assert not future.done()
    go.set()
    assert future.result(10) != threading.get_ident()


@pytest.mark.parametrize("in_thread", [False, True])
def test_passes_are_computed_in_their_order_and_by_one_thread(in_thread: bool) -> None:
    worker, done, threads = Worker(in_thread), list[int](), set[int]()

    def compute(number: int) -> int:
        threads.add(threading.get_ident())
        done.append(number)
        return number

    futures = [worker.submit(partial(compute, n)) for n in range(20)]
    assert [future.result(10) for future in futures] == done == [*range(20)]
    assert len(threads) == 1


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_pass_that_fails_tells_whoever_asks_and_the_next_is_computed(in_thread: bool) -> None:
    worker = Worker(in_thread)

    def fail() -> None:
        raise Failure("of the kernel")

    failed, following = worker.submit(fail), worker.submit(lambda: 7)
    assert following.result(10) == 7
    for _ in range(2):
        with pytest.raises(Failure, match="of the kernel"):
            failed.result(10)


def test_ctrl_c_is_no_failure_of_a_pass() -> None:
    """Without a thread it leaves `submit`, as it leaves any other function."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Worker(in_thread=False).submit(interrupted)


@pytest.mark.parametrize("in_thread", [False, True])
def test_to_wait_is_to_come_back_when_all_is_done_whatever_became_of_it(in_thread: bool) -> None:
    worker, go, done = Worker(in_thread), threading.Event(), list[int]()

    def fail() -> None:
        assert go.wait(10) or not in_thread
        raise Failure

    if not in_thread:
        go.set()
    failed = worker.submit(fail)
    worker.submit(lambda: done.append(1))
    go.set()
    worker.wait()
    assert done == [1] and isinstance(failed.exception(), Failure)
    worker.wait()


def test_the_thread_ends_with_its_worker() -> None:
    worker = Worker(in_thread=True)
    thread = worker.submit(threading.current_thread).result(10)
    assert thread.is_alive()
    del worker
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def figures(num_logprobs: list[int | None]) -> BatchLogprobs:
    count = len([n for n in num_logprobs if n is not None])
    ids = torch.arange(3).repeat(count, 1)
    values = torch.tensor([-0.5, -1.5, -2.5]).repeat(count, 1)
    return BatchLogprobs(num_logprobs, torch.arange(count) - 9.0, values, ids)


def test_an_output_has_the_tokens_and_nothing_where_nothing_was_asked_for() -> None:
    given = torch.tensor([7, -1, 9], dtype=torch.int32)
    tokens, logprobs = HostOutput(ForwardOutput(given, None)).read()
    assert (tokens.tolist(), tokens.dtype) == ([7, -1, 9], torch.int32)
    assert logprobs == [None, None, None]


def test_an_output_has_the_log_probabilities_of_the_rows_that_asked() -> None:
    output = HostOutput(ForwardOutput(torch.tensor([4, 5, 6]).int(), figures([2, None, 0])))
    for _ in range(2):
        _, logprobs = output.read()
        assert logprobs == [
            TokenLogprob(4, -9.0, ((0, -0.5), (1, -1.5))),
            None,
            TokenLogprob(6, -8.0, ()),
        ]


def test_an_output_of_no_rows_is_empty() -> None:
    tokens, logprobs = HostOutput(ForwardOutput(torch.empty(0, dtype=torch.int32), None)).read()
    assert (tokens.tolist(), logprobs) == ([], [])


def test_what_is_on_the_cpu_is_not_copied() -> None:
    x = torch.arange(3)
    assert to_host(x) is x
    asked = figures([1])
    same = asked.to_host()
    assert same.chosen is asked.chosen and same.top_ids is asked.top_ids
    assert same.top_values is asked.top_values and same.num_logprobs == [1]


# --- How an engine is set up ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "on_cpu"),
    [("cpu", True), ("cpu:0", True), ("cuda", False), ("cuda:1", False), ("mps", False)],
)
def test_steps_overlap_where_the_cpu_has_nothing_else_to_do(device: str, on_cpu: bool) -> None:
    config = EngineConfig("no model", device=device)
    assert (config.on_cpu, config.overlaps) == (on_cpu, not on_cpu)
    assert EngineConfig("no model", device=device, overlap=True).overlaps
    assert not EngineConfig("no model", device=device, overlap=False).overlaps
    assert (config.compute_dtype is torch.float32) == on_cpu


@pytest.mark.parametrize("value", ["yes", "", 2, [True]])
def test_an_overlap_that_is_none_is_refused_with_the_rule_and_the_value(value: Any) -> None:
    with pytest.raises(ValueError) as refused:
        EngineConfig("no model", overlap=value)
    assert str(refused.value) == f"overlap must be True or False or None, got {value!r}"


@pytest.mark.parametrize("overlap", [False, True])
def test_on_a_cpu_only_overlap_takes_a_thread(overlap: bool) -> None:
    server = Server(worker="thread" if overlap else "")
    threads = set[threading.Thread]()
    original = server.engine.forward_batch

    def forward_batch(batch: Batch) -> Any:
        threads.add(threading.current_thread())
        return original(batch)

    with passes_by(server.engine, forward_batch):
        server.drain(server.add(apart(0), 3), server.add(apart(1), 2))
    assert len(threads) == 1
    assert (threading.current_thread() in threads) == (not overlap)


# --- What a step knows, and when --------------------------------------------------------------


def ended(server: Server, *requests: Request, now: float = 0.0) -> int:
    """Step until all have ended; how many steps that took."""
    for number in range(1000):
        if all(request.finish_reason for request in requests):
            return number
        server.step(now=now)
    raise AssertionError("somebody never ends")


@in_all_ways
def test_a_token_is_known_a_step_later(worker: str) -> None:
    server = Server(worker=worker)
    request, known = server.add(apart(0), 4), []
    for _ in range(5):
        server.step()
        known.append(len(request.token_ids))
    assert known == [0, 1, 2, 3, 4]
    assert request.token_ids == server.answer(request)


@in_all_ways
def test_passes_are_those_of_steps_in_turn(worker: str) -> None:
    """Also the one that computes a request's second token: then nobody knows its first."""
    passes = []
    for way in ("", worker):
        server = Server(worker=way, max_batch_tokens=6)
        requests = [server.add(apart(uid, length), 5) for uid, length in enumerate((14, 3, 5))]
        server.drain(*requests)
        passes.append(server.engine.batches)
    assert passes[0] == passes[1]
    assert sum(len(batch) for batch in passes[1]) > 15


@in_all_ways
@pytest.mark.parametrize("num_tokens", [1, 2, 3, 8])
def test_who_may_say_so_many_tokens_says_them_and_costs_no_row_more(
    worker: str, num_tokens: int
) -> None:
    server = Server(worker=worker)
    request, other = server.add(apart(0), num_tokens), server.add(apart(1), 5)
    steps = ended(server, request)
    assert steps == num_tokens + 1
    server.drain(request, other)
    assert sum(0 in batch for batch in server.engine.batches) == num_tokens
    assert server.is_empty()


PROMPT = [6, 6, 7]


def ending_at(index: int, num_tokens: int = 8) -> int:
    """The token at this place of the answer to `PROMPT`, in which it comes once."""
    answer = fake_engine().answer(PROMPT, num_tokens)
    assert answer.count(answer[index]) == 1
    return answer[index]


@in_all_ways
@pytest.mark.parametrize("index", range(8))
def test_an_end_is_known_a_pass_late_and_the_row_more_is_thrown_away(
    worker: str, index: int
) -> None:
    server = Server(worker=worker, eos_ids=[ending_at(index)])
    request, other = server.add(PROMPT, 8), server.add(apart(0), 12, ignore_eos=True)
    assert ended(server, request) == index + 2
    assert request.token_ids == server.answer(request)[: index + 1]
    assert (request.finish_reason, request.error) == ("stop", None)
    server.drain(other)
    # The row more: none where the end is the last token that it may say.
    assert sum(0 in batch for batch in server.engine.batches) == min(index + 2, 8)
    assert request.token_ids == server.answer(request)[: index + 1]
    assert server.is_empty()


@in_all_ways
@pytest.mark.parametrize("index", [0, 3, 7])
def test_a_stop_token_of_its_own_ends_a_request_as_the_model_s_does(
    worker: str, index: int
) -> None:
    server = Server(worker=worker)
    request = server.add(PROMPT, 8, stop_token_ids=[ending_at(index)], ignore_eos=True)
    ended(server, request)
    assert (request.token_ids[-1], request.finish_reason) == (ending_at(index), "stop")
    assert len(request.token_ids) == index + 1
    assert server.is_empty()


def args_of_passes(server: Server, *requests: Request) -> list[Any]:
    """What the sampler is told in each pass, read while it is computed."""
    told: list[Any] = []
    original = server.engine.forward_batch

    def forward_batch(batch: Batch) -> Any:
        args = batch.sampling_args
        seen = [(p.prompt_ids.tolist(), p.generated_ids.tolist()) for p in args.penalties]
        told.append(SimpleNamespace(seen=seen, banned=args.banned, filters=args.filters))
        return original(batch)

    with passes_by(server.engine, forward_batch):
        server.drain(*requests)
    return told


@in_all_ways
def test_a_penalty_counts_the_token_that_only_the_device_knows(worker: str) -> None:
    server = Server(worker=worker)
    request = server.add(PROMPT, 6, frequency_penalty=0.5)
    told = args_of_passes(server, request)
    answer = server.answer(request)
    assert [args.seen for args in told] == [[(PROMPT, answer[:n])] for n in range(6)]


@in_all_ways
def test_the_sampler_is_told_as_long_as_nothing_may_end_an_answer(worker: str) -> None:
    server = Server(worker=worker)
    request = server.add(PROMPT, 6, min_tokens=3, stop_token_ids=[2])
    told = args_of_passes(server, request)
    assert [args.banned for args in told] == [[(0, [2])]] * 3 + [[]] * 3


@in_all_ways
def test_each_token_has_the_random_number_of_its_place(worker: str) -> None:
    numbers = []
    for way in ("", worker):
        server = Server(worker=way)
        told = args_of_passes(server, server.add(PROMPT, 6, temperature=1.0, seed=7))
        numbers.append([float(args.filters.uniform) for args in told])
    assert numbers[0] == numbers[1]
    assert len({*numbers[0]}) == 6


@in_all_ways
def test_where_nothing_is_left_to_launch_all_that_is_in_flight_is_taken_over(worker: str) -> None:
    server = Server(worker=worker)
    request = server.add(apart(0), 2)
    server.step(3)
    assert request.finish_reason == "length"
    num_passes = len(server.engine.batches)
    server.step(5)
    assert len(server.engine.batches) == num_passes == 2
    assert not server.scheduler._launches


@in_all_ways
@pytest.mark.parametrize("num_tokens", [1, 2, 5])
def test_who_shares_a_prompt_that_is_in_flight_waits_for_it(worker: str, num_tokens: int) -> None:
    """Also for one whose only token is on its way: it is in no pass any more."""
    server = Server(worker=worker)
    shared = [*range(50, 90)]
    requests = [server.add([*shared, uid], num_tokens) for uid in range(3)]
    other = server.add(apart(4), 9)
    server.drain(*requests, other)
    assert [request.num_cached_tokens for request in requests] == [0, 40, 40]


@in_all_ways
def test_no_pass_has_more_tokens_than_its_budget(worker: str) -> None:
    server = Server(worker=worker, max_batch_tokens=7, max_running_reqs=6)
    server.drain(*(server.add(apart(uid, 3 + 4 * uid), 1 + uid) for uid in range(9)))
    sizes = [sum(end - begin for begin, end in one.values()) for one in server.engine.batches]
    assert max(sizes) == 7


# --- What may not be given away ---------------------------------------------------------------


def rows_and_pages(server: Server) -> tuple[int, int]:
    """How many of each are free."""
    scheduler: Any = server.scheduler
    return scheduler._table.num_free_rows, scheduler._cache._allocator.num_free


@in_all_ways
def test_who_has_ended_keeps_its_row_and_pages_for_the_pass_that_it_is_still_in(
    worker: str,
) -> None:
    server = Server(worker=worker, eos_ids=[ending_at(2)], page_size=1, max_running_reqs=2)
    other, request = server.add(apart(0), 9, ignore_eos=True), server.add(PROMPT, 8)
    waiting = server.add(apart(1), 2, ignore_eos=True)
    ended(server, request)
    pages = request.req.cache_handle.pages
    assert rows_and_pages(server)[0] == 0
    server.step()
    assert rows_and_pages(server)[0] == 1
    assert not waiting.token_ids and waiting.state.name == "WAITING"
    server.step()
    assert waiting.req.table_idx == request.req.table_idx
    assert len(pages) >= 5
    server.drain(other, waiting)
    assert server.is_empty()


class Hasty(Scheduler):
    """Frees what a request holds as soon as it has ended."""

    def _end(self, request: Request, reason: FinishReason, error: Exception | None = None) -> None:
        in_flight = not request.finish_reason and self._is_in_flight(request)
        super()._end(request, reason, error)
        if in_flight and request.is_running is False:
            super()._release(request)
            request.req.uid = -1

    def _release(self, request: Request, failed: bool = False) -> None:
        if request.req.uid != -1:
            super()._release(request, failed)


class OneObject(Scheduler):
    """Lets a pass read what the steps go on to change."""

    def _launch(self, requests: list[Request]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(minisgl.scheduler.scheduler, "copy", lambda req: req)
            super()._launch(requests)


def crowded(kind: type[Scheduler]) -> None:
    """Many requests that end at a token nobody expects go through two rows, passes come late."""
    engine = fake_engine(letters=5, page_size=2, num_pages=14, max_running_reqs=2, overlap=True)
    scheduler = kind(engine, frozenset({4}))
    overlapped(scheduler, "late")
    requests = [make_request(uid, [20 + uid, 5, 6], 12) for uid in range(12)]
    for request in requests:
        scheduler.add(request)
    for _ in range(400):
        scheduler.step()
    for request in requests:
        answer = engine.answer(request.input_ids, 12)
        answer = answer[: answer.index(4) + 1] if 4 in answer else answer
        assert request.error is None, request.error
        assert request.token_ids == answer


def test_a_row_that_is_given_away_too_early_is_seen_by_the_fake_engine() -> None:
    crowded(Scheduler)
    with pytest.raises(AssertionError):
        crowded(Hasty)


def test_a_pass_that_reads_what_has_moved_on_is_seen_by_the_fake_engine() -> None:
    crowded(Scheduler)
    with pytest.raises(AssertionError):
        crowded(OneObject)


@in_all_ways
def test_nobody_gives_way_while_a_pass_is_in_flight(worker: str) -> None:
    """It may end somebody, and then nobody need."""
    server = Server(worker=worker, num_pages=10, page_size=1)
    scheduler: Any = server.scheduler
    scheduler._prefill.estimate.share = 0.01
    scheduler.trace = trace = Trace()
    retract, in_flight = scheduler._retract, []

    def watched(request: Request) -> None:
        in_flight.append(len(scheduler._launches))
        retract(request)

    scheduler._retract = watched
    requests = [server.add(apart(uid, 2), 8) for uid in range(3)]
    server.drain(*requests)
    assert in_flight and not any(in_flight)
    assert "retract" in {event["event"] for event in trace.events}
    assert server.is_empty()


@in_all_ways
def test_an_end_that_is_in_flight_saves_who_would_have_given_way(worker: str) -> None:
    server = Server(worker=worker, num_pages=9, page_size=1, eos_ids=[ending_at(1)])
    scheduler: Any = server.scheduler
    scheduler._prefill.estimate.share = 0.01
    request, younger = server.add(PROMPT, 5), server.add(apart(1, 2), 5, ignore_eos=True)
    server.drain(younger)
    assert (request.finish_reason, len(request.token_ids)) == ("stop", 2)
    assert (request.num_retractions, younger.num_retractions) == (0, 0)


# --- Ended from outside -----------------------------------------------------------------------


@in_all_ways
@pytest.mark.parametrize("reason", ["abort", "timeout"])
def test_a_request_may_be_ended_before_any_step(worker: str, reason: str) -> None:
    """While it waits, between two chunks, with its first, any or its last token in flight."""
    states = set()
    limits = {"timeout": 5.0} if reason == "timeout" else None
    for number in range(0 if reason == "abort" else 1, 12):  # a timeout counts from the first step
        server = Server(worker=worker, max_batch_tokens=4)
        other = server.add(apart(0), 14)
        request = server.add(apart(1, 9), 6, limits)
        server.step(number)
        states.add(request.state)
        for _ in range(2 if reason == "abort" else 0):
            server.scheduler.abort(request.uid)
            server.scheduler.abort(99)
        before = len(request.token_ids)
        server.step(now=6.0)
        ended(server, request)
        expected = (reason, State.ABORTED) if before < 6 else ("length", State.FINISHED)
        assert (request.finish_reason, request.state) == expected
        assert request.token_ids == server.answer(request)[:before]
        server.drain(other)
        server.drain(server.add(apart(1, 9), 6))
        assert server.is_empty()
    assert states == {State.WAITING, State.PREFILL, State.DECODE, State.FINISHED}


@in_all_ways
def test_an_abort_comes_before_an_end_that_nobody_knows_yet(worker: str) -> None:
    server = Server(worker=worker, eos_ids=[ending_at(2)])
    request = server.add(PROMPT, 8)
    server.step(3)  # the end is in flight
    server.scheduler.abort(request.uid)
    server.step()
    assert (request.finish_reason, len(request.token_ids)) == ("abort", 2)
    assert server.is_empty()


@in_all_ways
def test_an_abort_after_an_end_changes_nothing(worker: str) -> None:
    server = Server(worker=worker, eos_ids=[ending_at(2)])
    request, other = server.add(PROMPT, 8), server.add(apart(1), 8, ignore_eos=True)
    ended(server, request)  # a row more of it is in flight
    server.scheduler.abort(request.uid)
    server.drain(other)
    assert (request.finish_reason, len(request.token_ids)) == ("stop", 3)
    assert server.is_empty()


@in_all_ways
def test_the_kv_of_whoever_was_aborted_in_flight_is_kept_for_others(worker: str) -> None:
    server = Server(worker=worker)
    request = server.add(apart(0, 17), 8)
    server.step(3)
    server.scheduler.abort(request.uid)
    server.step(2)
    again = server.add(apart(0, 17), 8)
    server.drain(again)
    assert again.num_cached_tokens == 16


def test_an_abort_in_the_middle_of_a_pass_counts_from_the_next_step() -> None:
    server = Server(worker="thread")
    request, original = server.add(apart(0), 9), server.engine.forward_batch

    def forward_batch(batch: Batch) -> Any:
        if len(server.engine.batches) == 3:
            server.scheduler.abort(request.uid)
        return original(batch)

    with passes_by(server.engine, forward_batch):
        ended(server, request)
    assert request.finish_reason == "abort" and len(request.token_ids) in (3, 4)
    assert request.token_ids == server.answer(request)[: len(request.token_ids)]
    assert server.is_empty()


# --- Failures ---------------------------------------------------------------------------------


@contextmanager
def failing_pass(server: Server, number: int, spoils: bool = False) -> Iterator[None]:
    """In a `with` block the pass of this number fails, from 0 on, when it has written its KV."""
    original, numbers = server.engine.forward_batch, itertools.count()

    def forward_batch(batch: Batch) -> Any:
        fails = next(numbers) == number
        if fails and spoils:
            server.engine.spoil(batch)
        else:
            output = original(batch)
        if fails:
            raise Failure(f"of pass {number}")
        return output

    with passes_by(server.engine, forward_batch):
        yield


@in_all_ways
@pytest.mark.parametrize("spoils", [False, True])
@pytest.mark.parametrize("number", range(5))
def test_a_pass_that_fails_in_flight_ends_those_who_are_in_it(
    worker: str, number: int, spoils: bool
) -> None:
    """And nobody who comes later, though the pass behind it was launched before that was known."""
    server = Server(worker=worker, max_running_reqs=3)
    requests = [server.add(apart(0), 4), server.add(apart(1), 9)]
    with failing_pass(server, number, spoils):
        server.step(2)
        requests.append(server.add(apart(2), 7))  # from the third pass on
        server.step(1)
        requests.append(server.add(apart(3), 4))  # waits for a row
        ended(server, *requests)
    lost = [
        r
        for r, first, last in zip(requests, (0, 0, 2), (3, 8, 8), strict=False)
        if first <= number <= last
    ]
    for request in requests:
        answer, told = server.answer(request), request.token_ids
        if request in lost:
            assert request.finish_reason == "error" and f"of pass {number}" in str(request.error)
            assert told == answer[: len(told)] and len(told) < len(answer)
        else:
            assert (request.finish_reason, told) == ("length", answer)
    server.drain(server.add(apart(0), 4), server.add(apart(1), 9))
    assert server.is_empty()


@in_all_ways
def test_an_end_stands_though_the_row_more_fails(worker: str) -> None:
    server = Server(worker=worker, eos_ids=[ending_at(2)])
    request = server.add(PROMPT, 8)
    with failing_pass(server, 3):
        ended(server, request)
        server.step()
    assert (request.finish_reason, request.error) == ("stop", None)
    assert len(request.token_ids) == 3
    assert server.is_empty()


@in_all_ways
@pytest.mark.parametrize("reason", ["abort", "timeout"])
def test_nobody_reads_what_a_failed_pass_has_left_of_whoever_ended_meanwhile(
    worker: str, reason: str
) -> None:
    server = Server(worker=worker)
    request = server.add(apart(0, 17), 8, {"timeout": 5.0} if reason == "timeout" else None)
    with failing_pass(server, 0, spoils=True):
        server.step()
        if reason == "abort":
            server.scheduler.abort(request.uid)
        server.step(2, now=6.0)
    assert request.finish_reason == reason
    again = server.add(apart(0, 17), 8)
    server.drain(again)
    assert again.num_cached_tokens == 0


@in_all_ways
def test_the_kv_of_the_newest_token_is_shared_only_when_its_pass_is_done(worker: str) -> None:
    """The prompt goes to the tree when its token is known: then that token's pass is in flight."""
    server = Server(worker=worker)
    request = server.add(apart(0, 7), 8)
    with failing_pass(server, 1, spoils=True):
        ended(server, request)
    again = server.add([*apart(0, 7), *request.token_ids, 9], 3)
    server.drain(again)
    assert (request.finish_reason, len(request.token_ids)) == ("error", 1)
    assert again.num_cached_tokens == 4


@in_all_ways
def test_nobody_reads_the_kv_of_a_row_without_scores_that_was_aborted_meanwhile(
    worker: str,
) -> None:
    server = Server(worker=worker)
    request = server.add(apart(0, 17), 8)
    with without_scores(server, request.uid):
        server.step()
        server.scheduler.abort(request.uid)
        server.step(2)
    again = server.add(apart(0, 17), 8)
    server.drain(again)
    assert again.num_cached_tokens == 0


@in_all_ways
def test_a_row_without_scores_ends_alone_and_its_row_more_is_thrown_away(worker: str) -> None:
    server = Server(worker=worker)
    request, other = server.add(apart(0), 8), server.add(apart(1), 8)
    server.step(2)
    with without_scores(server, request.uid):
        ended(server, request)
    assert request.finish_reason == "error" and "NaN" in str(request.error)
    assert request.token_ids == server.answer(request)[: len(request.token_ids)]
    server.drain(other)
    assert server.is_empty()


# --- Interrupts -------------------------------------------------------------------------------


@in_all_ways
@pytest.mark.parametrize("num_steps", range(4))
def test_ctrl_c_ends_those_who_run_and_who_waits_goes_on(worker: str, num_steps: int) -> None:
    server = Server(worker=worker, max_running_reqs=2)
    running = [server.add(apart(uid), 9) for uid in range(2)]
    waiting = server.add(apart(2), 3)
    server.step(num_steps)
    with failing(server, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        server.step(2)
    server.drain(waiting)
    for request in running:
        assert request.finish_reason == "error" and "ask again" in str(request.error)
        assert request.token_ids == server.answer(request)[: len(request.token_ids)]
    assert server.is_empty()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, even in a process that was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_a_pass_is_waited_for_takes_nothing_from_under_it(ctrl_c: None) -> None:
    server = Server(worker="thread")
    scheduler: Any = server.scheduler
    original, take_over = server.engine.forward_batch, scheduler._take_over
    waits, noticed, go = threading.Event(), threading.Event(), threading.Event()
    order, main_thread = list[str](), threading.get_ident()

    def forward_batch(batch: Batch) -> Any:
        assert waits.wait(10)
        if not order:
            order.append("interrupt")
            for _ in range(10):  # one that comes just before a thread waits is not noticed there
                signal.pthread_kill(main_thread, signal.SIGINT)
                if noticed.wait(1):
                    break
            assert go.wait(10)
            order.append("computed")
        return original(batch)

    def watched() -> None:
        waits.set()
        take_over()

    scheduler._take_over = watched
    request = server.add(apart(0), 5)
    with passes_by(server.engine, forward_batch):
        with pytest.raises(KeyboardInterrupt):
            server.step(2)
        noticed.set()
        threading.Timer(0.05, go.set).start()
        server.scheduler.check_invariants()
        order.append("freed")
    assert order == ["interrupt", "computed", "freed"]
    assert request.finish_reason == "error" and "ask again" in str(request.error)
    assert server.is_empty()


def test_ctrl_c_right_behind_a_launch_waits_for_that_pass_too() -> None:
    server = Server(worker="late")

    class Interrupted(deque[Any]):
        def append(self, launch: Any) -> None:
            raise KeyboardInterrupt

    request = server.add(apart(0), 5)
    scheduler: Any = server.scheduler
    scheduler._launches = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        server.step()
    assert server.engine.batches == []
    scheduler.check_invariants()
    assert [*server.engine.batches[0]] == [request.uid]
    scheduler._launches = deque()
    server.drain(server.add(apart(1), 5))
    assert server.is_empty()


@pytest.mark.parametrize("worker", ["early", "late"])
def test_an_interrupt_at_any_line_of_such_steps_leaves_everything_usable(worker: str) -> None:
    place: list[str] = ["not yet"]
    number, outcomes = (0 if worker == "early" else 1), set()
    server = Server(worker=worker, page_size=1, num_pages=14, max_seq_len=13, max_batch_tokens=8)
    while place:
        number += 2  # the other half in the other way
        server.scheduler._prefill.estimate.share = 0.01
        requests = [server.add(apart(uid, 2), n) for uid, n in enumerate((8, 7, 6))]
        waits = server.add(apart(3, 2), 2)
        server.step(2)
        with suppress(KeyboardInterrupt), interrupt_at(number) as place:
            for _ in range(3):
                server.scheduler.step()
        with suppress(KeyboardInterrupt), interrupt_at(1 + number % 60):
            server.scheduler.check_invariants()
        everybody = [*requests, waits]
        ended(server, *everybody)
        for request in everybody:
            answer, reason = server.answer(request), request.finish_reason
            assert reason in ("length", "error"), (place, request)
            assert request.token_ids == answer[: len(request.token_ids)], place
            assert reason != "length" or request.token_ids == answer, place
            if reason == "error":
                assert "ask again" in str(request.error), place
            outcomes.add((everybody.index(request), reason))
    assert number > 300
    assert {(0, "error"), (0, "length"), (2, "error"), (2, "length"), (3, "length")} <= outcomes


# --- What is recorded -------------------------------------------------------------------------


def untimed(trace: Trace) -> list[dict[str, Any]]:
    return [{key: value for key, value in e.items() if key != "time"} for e in trace.events]


def test_a_trace_shows_a_launch_before_the_result_of_the_pass_before_it() -> None:
    server = Server(worker="late", eos_ids=[ending_at(1)])
    server.scheduler.trace = trace = Trace()
    request = server.add(PROMPT, 8)
    ended(server, request)
    server.step()
    one, two, three = fake_engine().answer(PROMPT, 3)
    assert untimed(trace)[1:] == [
        {"event": "launch", "phase": "prefill", "lengths": {0: (0, 3)}},
        {"event": "launch", "phase": "decode", "lengths": {0: (3, 4)}},
        {"event": "result", "tokens": {0: one}},
        {"event": "launch", "phase": "decode", "lengths": {0: (4, 5)}},
        {"event": "result", "tokens": {0: two}},
        {"event": "finish", "uid": 0, "reason": "stop"},
        {"event": "result", "tokens": {0: three}},
    ]


def passes_of(trace: Trace, folder: Path) -> list[dict[str, Any]]:
    """The passes of its timeline."""
    trace.write_chrome(folder / "trace.json")
    spans = json.loads((folder / "trace.json").read_text("utf-8"))["traceEvents"]
    return [span for span in spans if span["tid"] == 0]


def test_a_timeline_shows_each_pass_from_the_end_of_the_one_before(tmp_path: Path) -> None:
    """Also those in which a request is that has ended already."""
    server = Server(worker="late", eos_ids=[ending_at(1)])
    server.scheduler.trace = trace = Trace()
    request, other = server.add(PROMPT, 8), server.add(apart(1), 6, ignore_eos=True)
    server.drain(other)
    passes = passes_of(trace, tmp_path)
    assert [[*one["args"]] for one in passes] == [["0", "1"]] * 3 + [["1"]] * 3
    for one, following in itertools.pairwise(passes):
        assert one["ts"] + one["dur"] <= following["ts"] + 1e-3
    assert len(request.token_ids) == 2


def test_a_trace_may_begin_while_a_pass_is_in_flight(tmp_path: Path) -> None:
    server = Server(worker="late")
    request = server.add(apart(0), 6)
    server.step(2)
    server.scheduler.trace = trace = Trace()
    server.drain(request)
    events = [event["event"] for event in trace.events]
    assert events.count("launch") == events.count("result") == 4
    lengths = [one["args"]["0"] for one in passes_of(trace, tmp_path)]
    assert lengths == [[n, n + 1] for n in range(6, 10)]


def test_after_ctrl_c_a_timeline_pairs_launches_and_results_again(tmp_path: Path) -> None:
    server = Server(worker="late")
    server.scheduler.trace = trace = Trace()
    server.add(apart(0), 9)
    server.step(2)
    with failing(server, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        server.step()
    server.drain(server.add(apart(1, 9), 2))
    assert [[*one["args"]] for one in passes_of(trace, tmp_path)] == [["0"], ["1"], ["1"]]


def test_a_failure_is_recorded_in_place_of_a_result(tmp_path: Path) -> None:
    server = Server(worker="late")
    server.scheduler.trace = trace = Trace()
    server.add(apart(0), 3)
    with failing_pass(server, 1):
        server.step(5)
    events = [event["event"] for event in trace.events]
    assert events == ["add", *["launch"] * 2, "result", "launch", "failure", "finish", "result"]
    assert len(passes_of(trace, tmp_path)) == 3


@pytest.mark.parametrize("seed", range(3))
def test_what_happens_does_not_depend_on_how_soon_a_pass_is_done(seed: int) -> None:
    def run(worker: str) -> list[dict[str, Any]]:
        chance = random.Random(seed)
        server = Server(3, [4], worker, num_pages=30, page_size=1, max_seq_len=16)
        server.scheduler.trace = trace = Trace()
        for now in range(80):
            for _ in range(chance.choice([0, 0, 1, 2]) if now < 40 else 0):
                prompt = [5 + chance.randrange(2) for _ in range(chance.randint(1, 6))]
                limits = {"timeout": chance.choice([None, 4.0])}
                params = {"ignore_eos": chance.random() < 0.5}
                server.add(prompt, chance.randint(1, 9), limits, **params)
            if chance.random() < 0.4:
                server.scheduler.abort(chance.randrange(now // 2 + 1))
            server.step(now=float(now))
        return untimed(trace)

    early = run("early")
    assert early == run("late") == run("thread")
    assert {"stop", "length", "abort", "timeout"} <= {event.get("reason") for event in early}


# --- LLM on a fake engine ---------------------------------------------------------------------


@pytest.fixture
def fake_llm(tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch) -> MakeLLM:
    """A function that makes the object, in the body of the test, on a fake engine."""

    def make(**options: Any) -> LLM:
        with monkeypatch.context() as patch:
            patch.setattr(minisgl.llm.llm, "Engine", FakeEngine)
            return LLM(tiny_model("llama"), **{"max_seq_len": 64, "overlap": True} | options)

    return make


def up_to(max_tokens: int, **params: Any) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, ignore_eos=True, **params)


@pytest.mark.parametrize("num_tokens", [1, 2, 3, 8])
@pytest.mark.parametrize("index", [None, 0, 1, 6, 7])
def test_what_a_caller_is_told_is_the_same(
    fake_llm: MakeLLM, num_tokens: int, index: int | None
) -> None:
    params = up_to(num_tokens)
    if index is not None:
        params = up_to(num_tokens, stop_token_ids=[ending_at(index)])
    told = []
    for overlap in (False, True):
        llm = fake_llm(overlap=overlap)
        outputs = llm.generate([PROMPT, [8, 9], [*PROMPT, 4]], params)
        pieces = [*llm.stream(PROMPT, params)]
        assert [token for piece in pieces for token in piece.token_ids] == outputs[0].token_ids
        assert "".join(piece.text for piece in pieces) == outputs[0].text
        reasons = [piece.finish_reason for piece in pieces]
        assert reasons == [None] * (len(pieces) - 1) + [outputs[0].finish_reason]
        told.append((outputs, pieces))
    assert told[0] == told[1]


def test_a_stream_that_nobody_reads_any_more_leaves_nothing_behind(fake_llm: MakeLLM) -> None:
    llm = fake_llm(page_size=4, num_pages=15, max_seq_len=61)
    for num_read in range(1, 5):
        stream = llm.stream(PROMPT, up_to(20))
        for _ in range(num_read):
            next(stream)
        del stream
        llm.scheduler.step()
        llm.scheduler.check_invariants()
        assert len(llm.generate([[2] * 60], up_to(1))[0].token_ids) == 1


@pytest.mark.parametrize("error", [Failure("of the kernel"), KeyboardInterrupt()])
@pytest.mark.parametrize("number", [0, 1, 4])
def test_a_batch_may_fail_in_any_pass(fake_llm: MakeLLM, number: int, error: BaseException) -> None:
    llm = fake_llm(page_size=4, num_pages=12, max_seq_len=49)
    engine: Any = llm.engine
    prompts = [PROMPT, [*PROMPT, 4], [8]]
    expected = [engine.answer(prompt, 9) for prompt in prompts]
    original, numbers = engine.forward_batch, itertools.count()

    def forward_batch(batch: Batch) -> Any:
        output = original(batch)
        if next(numbers) == number:
            raise error
        return output

    told = RuntimeError if isinstance(error, Failure) else KeyboardInterrupt
    with passes_by(engine, forward_batch), pytest.raises(told):
        llm.generate(prompts, up_to(9))
    for _ in range(2):
        outputs = llm.generate(prompts, up_to(9))
        assert [output.token_ids for output in outputs] == expected
        assert len(llm.generate([[2] * 48], up_to(1))[0].token_ids) == 1


def test_threads_share_an_object(fake_llm: MakeLLM) -> None:
    llm = fake_llm(max_running_reqs=3)
    engine: Any = llm.engine

    def ask(number: int) -> None:
        for n in range(5):
            prompt = [5 + number, 6 + n]
            [output] = llm.generate(prompt, up_to(7))
            assert output.token_ids == engine.answer(prompt, 7)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(ask, number) for number in range(4)]:
            future.result(60)


def test_to_close_with_a_pass_in_flight_waits_for_nothing_and_frees_all(fake_llm: MakeLLM) -> None:
    begun, go, threads = threading.Event(), threading.Event(), list[threading.Thread]()

    def closed_in_flight() -> weakref.ref[Any]:
        llm = fake_llm()
        there: Any = weakref.ref(llm.engine)

        def forward_batch(batch: Batch) -> Any:
            threads.append(threading.current_thread())
            begun.set()
            assert go.wait(10)
            return FakeEngine.forward_batch(there(), batch)

        llm.engine.forward_batch = forward_batch  # type: ignore[method-assign]
        llm.scheduler.add(make_request(0, PROMPT, 5))
        llm.scheduler.step()
        assert begun.wait(10)
        llm.close()
        llm.close()
        return there

    engine = closed_in_flight()
    go.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    gc.collect()
    assert engine() is None


# --- Real passes ------------------------------------------------------------------------------


@torch.inference_mode()
def assert_tokens_of(oracle: Any, request: Request) -> None:
    """One pass over our own text: while all tokens so far are the oracle's, so is the next."""
    ids = torch.tensor([[*request.input_ids, *request.token_ids[:-1]]])
    logits = oracle(ids, use_cache=False, logits_to_keep=len(request.token_ids)).logits[0]
    assert logits.argmax(-1).tolist() == request.token_ids


@pytest.mark.parametrize(("arch", "page_size"), [("llama", 1), ("qwen3", 4), ("qwen2", 16)])
def test_the_tokens_are_those_of_transformers_in_chunks_and_under_retraction(
    arch: str, page_size: int, tiny_model: TinyModel
) -> None:
    folder, chance = tiny_model(arch), random.Random(page_size)
    oracle = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    options: dict[str, Any] = {"page_size": page_size, "num_pages": 96 // page_size}
    options |= {"max_seq_len": 97, "max_running_reqs": 6, "max_batch_tokens": 20}
    scheduler = Scheduler(Engine(EngineConfig(folder, overlap=True, **options)), frozenset({3}))
    shared = chance.choices(range(4, 384), k=30)
    requests: list[Request] = []
    for number in range(2000):
        if len(requests) < 16 and number % 3 == 0:
            prompt = shared[: chance.choice([0, 0, 30])]
            prompt += chance.choices(range(4, 384), k=chance.randint(1, 12))
            # By another end than the model's: a third of all tokens is one.
            ends = [*range(4, 384, 3)] if chance.random() < 0.3 else []
            num_tokens = chance.randint(1, 40)
            requests.append(make_request(len(requests), prompt, num_tokens, stop_token_ids=ends))
            scheduler.add(requests[-1])
        scheduler._prefill.estimate.share = 0.01
        scheduler.step()
        scheduler.check_invariants()
        if len(requests) == 16 and all(request.finish_reason for request in requests):
            break
    assert sum(request.num_retractions for request in requests) >= 3
    assert {request.finish_reason for request in requests} == {"length", "stop"}
    for request in requests:
        assert_tokens_of(oracle, request)


PARAMS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "drawn": {"temperature": 1.5, "seed": 7},
    "drawn by the engine's seed": {"temperature": 1.5},
    "top-p": {"temperature": 2.0, "top_p": 0.8, "seed": 8},
    "penalties": {"repetition_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.5},
    "stop": {"stop_token_ids": [*range(3, 384, 9)]},
    "min_tokens": {"min_tokens": 12, "stop_token_ids": [*range(3, 384, 2)]},
    "logprobs": {"logprobs": 4},
}


@pytest.mark.parametrize("name", PARAMS)
def test_what_a_request_asks_of_the_sampler_holds(name: str, tiny_model: TinyModel) -> None:
    chance = random.Random(4)
    prompts = [chance.choices(range(3, 384), k=length) for length in (9, 2, 14, 5)]
    params = [up_to(n, **PARAMS[name]) for n in (24, 12, 20, 16)]
    answers = []
    for overlap in (False, True):
        with LLM(tiny_model("llama"), overlap=overlap, max_batch_tokens=12) as llm:
            answers.append(llm.generate(prompts, params))
    for one, other in zip(*answers, strict=True):
        assert (one.token_ids, one.finish_reason) == (other.token_ids, other.finish_reason)
        for left, right in zip(one.logprobs or [], other.logprobs or [], strict=True):
            assert left.logprob == pytest.approx(right.logprob, abs=1e-4)
            assert [token for token, _ in left.top] == [token for token, _ in right.top]


@pytest.mark.parametrize("name", ["greedy", "drawn", "penalties", "logprobs"])
def test_to_launch_a_pass_reads_nothing_but_what_it_yields(
    name: str, tiny_model: TinyModel
) -> None:
    """Which a GPU only queues. Else the host would wait for the pass before it."""
    with DeviceReads() as reads:
        engine = Engine(EngineConfig(tiny_model("llama"), device=DEVICE, overlap=True))
        scheduler: Any = Scheduler(engine, frozenset())
        overlapped(scheduler, "early")
        launch, counts = scheduler._launch, []

        def counted(requests: list[Request]) -> None:
            before = reads.count
            launch(requests)
            counts.append(reads.count - before)

        scheduler._launch = counted
        start = reads.count
        for uid in range(2):
            scheduler.add(make_request(uid, [5 + uid, 7, 8], 4, **PARAMS[name]))
        for _ in range(6):
            scheduler.step()
    assert counts == [1 + 3 * (name == "logprobs")] * 4
    assert reads.count - start == sum(counts)  # and to take its tokens over reads nothing more


@pytest.mark.slow
def test_the_real_model_answers_the_same(real_model: Path) -> None:
    prompts = [f"The capital of {country} is" for country in ("France", "Italy", "Japan", "Peru")]
    answers = []
    for overlap in (False, True):
        with LLM(real_model, max_seq_len=128, overlap=overlap) as llm:
            answers.append(llm.generate(prompts, SamplingParams(max_tokens=20)))
    assert answers[0] == answers[1]


# --- The command line -------------------------------------------------------------------------


@pytest.fixture
def model(tiny_model: TinyModel) -> list[str]:
    return ["--model", str(tiny_model("llama")), "--max-tokens", "6"]


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_generate_prints_the_prompt_and_its_answer(
    model: list[str], tiny_model: TinyModel, capsys: pytest.CaptureFixture[str]
) -> None:
    with LLM(tiny_model("llama")) as llm:
        [output] = llm.generate("The engine", SamplingParams(max_tokens=6))
    assert main(["generate", "The engine", *model]) == 0
    out, err = capsys.readouterr()
    assert out == f"The engine{output.text}\n"
    count = len(output.token_ids)
    assert f"({count} tokens, {output.finish_reason}: the first after" in err
    assert "tokens/s)" in err.splitlines()[-1]


def test_generate_reads_a_text_from_standard_input(
    model: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outs = []
    for prompt in ("The engine\nreads", "-"):
        typed(monkeypatch, "The engine\nreads")
        assert main(["generate", prompt, *model]) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1]


def test_what_is_drawn_depends_on_the_seed(
    model: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    outs = []
    for seed in ("1", "1", "2"):
        assert main(["generate", "a", "--temperature", "2", "--seed", seed, *model]) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1] != outs[2]


@pytest.mark.parametrize("text", ["One?\nTwo?\n\nnever asked\n", "One?\nTwo?"])
def test_a_chat_goes_on_until_an_empty_line_or_the_end(
    model: list[str],
    text: str,
    tiny_model: TinyModel,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages = [{"role": "system", "content": "Be short."}]
    answers = []
    with LLM(tiny_model("llama")) as llm:
        for question in ("One?", "Two?"):
            messages.append({"role": "user", "content": question})
            answers.append(llm.chat(messages, SamplingParams(max_tokens=6)).text)
            messages.append({"role": "assistant", "content": answers[-1]})
    typed(monkeypatch, text)
    assert main(["chat", "--system", "Be short.", *model]) == 0
    out, err = capsys.readouterr()
    assert out.rstrip() == "".join(f"> {answer}\n" for answer in answers) + ">"
    assert err.count("tokens, ") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--temperature", "-1"], "temperature must be a finite number ≥ 0, got -1.0"),
        (["--top-p", "0"], "top_p must be"),
        (["--max-tokens", "0"], "max_tokens must be an integer ≥ 1, got 0"),
        (["--model", "/no/folder"], "/no/folder"),
        (["--device", "toaster"], "device must be"),
    ],
)
@pytest.mark.parametrize("command", [["generate", "a"], ["chat"]])
def test_a_wrong_value_is_said_in_a_line(
    command: list[str],
    arguments: list[str],
    message: str,
    model: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*command, *model, *arguments]) == 1
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert out == "" and last.startswith("minisgl: ") and message in last


@pytest.mark.parametrize("arguments", [[], ["generate"], ["generate", "a", "--seed", "x"], ["x"]])
def test_what_is_no_command_is_answered_with_the_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m minisgl")


def test_an_empty_text_is_said_in_a_line(
    model: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "", *model]) == 1
    assert "minisgl: a prompt must hold at least one token" in capsys.readouterr().err


def stream_of(*events: str | BaseException) -> Callable[..., Iterator[StreamOutput]]:
    """In place of `LLM.stream`: pieces of text, and what is raised between them."""

    def stream(*_: Any) -> Iterator[StreamOutput]:
        for event in events:
            if isinstance(event, BaseException):
                raise event
            yield StreamOutput(event, [5], "length" if event is events[-1] else None)

    return stream


def test_ctrl_c_ends_a_text(
    model: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LLM, "stream", stream_of(" b", KeyboardInterrupt()))
    assert main(["generate", "a", *model]) == 130
    assert capsys.readouterr().out == "a b"


def test_ctrl_c_ends_an_answer_and_not_the_chat(
    model: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    answers = iter([stream_of("one", KeyboardInterrupt()), stream_of("two")])

    def stream(_: LLM, messages: list[dict[str, str]], params: SamplingParams) -> Any:
        asked.append([message["content"] for message in messages])
        return next(answers)()

    monkeypatch.setattr(LLM, "stream", stream)
    typed(monkeypatch, "first\nsecond\n")
    assert main(["chat", *model]) == 0
    assert asked == [["first"], ["second"]]
    out, err = capsys.readouterr()
    assert out == "> one> two\n> \n" and "the question is forgotten" in err


def test_a_request_that_fails_is_said_in_a_line(
    model: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LLM, "stream", stream_of(RuntimeError("request 0 failed: NaN")))
    assert main(["generate", "a", *model]) == 1
    assert capsys.readouterr().err.endswith("minisgl: request 0 failed: NaN\n")


@pytest.mark.parametrize("named", ["MINISGL_MODEL", "MINISGL_HOME", None])
def test_the_model_is_the_one_that_was_fetched_or_is_on_the_hub(
    named: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taken: list[str] = []

    def no_model(model: str, **_: Any) -> LLM:
        taken.append(model)
        raise ValueError("enough")

    monkeypatch.setattr("minisgl.__main__.LLM", no_model)
    monkeypatch.delenv("MINISGL_MODEL", raising=False)
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path))
    expected = "HuggingFaceTB/SmolLM2-135M-Instruct"
    if named == "MINISGL_MODEL":
        monkeypatch.setenv(named, expected := str(tmp_path))
    elif named == "MINISGL_HOME":
        folder = tmp_path / "SmolLM2-135M-Instruct"
        folder.mkdir()
        expected = str(folder)
    assert main(["generate", "a"]) == 1
    assert taken == [expected]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "minisgl", *arguments]


def of_this_tree() -> dict[str, str]:
    tree = Path(minisgl.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": str(tree), "PYTHONUTF8": "1"}


def test_the_help_names_the_commands_and_shows_examples() -> None:
    words = command("--help")
    done = subprocess.run(words, capture_output=True, encoding="utf-8", env=of_this_tree())
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("usage: python -m minisgl")
    for word in ("generate", "chat", "examples:", "--max-tokens 8", "continue a text"):
        assert word in done.stdout


def test_a_reader_who_leaves_is_no_error(model: list[str]) -> None:
    process = subprocess.Popen(
        command("generate", "The engine reads", *model, "--max-tokens", "60"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=of_this_tree(),
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read().decode()
    assert process.wait(60) == 0
    assert "Traceback" not in errors and "Broken pipe" not in errors
