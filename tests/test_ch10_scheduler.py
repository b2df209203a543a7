"""Chapter 10: a request joins at the next step and leaves as soon as it is done.

In the order in which the files build on each other: a right file passes its own part before the
next one is written.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from transformers import AutoModelForCausalLM

import minisgl.llm.llm
import minisgl.scheduler.trace
from fake_engine import BUDGETED, FakeEngine, make_request
from fake_server import (
    Failure,
    Server,
    apart,
    failing,
    passes_by,
    prefill_manager,
    without_scores,
)
from interrupts import interrupt_at
from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.config import EngineConfig
from minisgl.engine.engine import Engine
from minisgl.engine.sample import SamplingArgs, make_args, make_filters, sample
from minisgl.kvcache.manager import CacheManager
from minisgl.llm import LLM
from minisgl.scheduler.decode import DecodeManager
from minisgl.scheduler.lifecycle import State, check_transition, last_state
from minisgl.scheduler.prefill import MIN_SHARED_TOKENS
from minisgl.scheduler.request import Request, finish_reason
from minisgl.scheduler.scheduler import Scheduler
from minisgl.scheduler.table import TableManager
from minisgl.scheduler.trace import Trace
from minisgl.tokenizer.detokenize import Detokenizer

TinyModel = Callable[[str], Path]
MakeLLM = Callable[..., LLM]

NO_HANDLE: Any = None
NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# --- Parameters -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "subject", "rule", "values"),
    [
        ("stop_token_ids", "stop_token_ids", "a list", [None, 5, "12", {3}, range(3)]),
        ("stop_token_ids", "each of stop_token_ids", "an integer ≥ 0", [-1, 1.0, True, "3", None]),
        ("min_tokens", "min_tokens", "an integer ≥ 0 and ≤ 8", [-1, 9, 1.0, True, "3", None]),
    ],
)
def test_a_bad_parameter_is_refused_with_its_rule_and_value(
    name: str, subject: str, rule: str, values: list[Any]
) -> None:
    for value in values:
        given: Any = [7, value] if subject.startswith("each") else value
        with pytest.raises(ValueError) as refused:
            replace(SamplingParams(max_tokens=8), **{name: given}).validate()
        assert str(refused.value) == f"{subject} must be {rule}, got {value!r}"


@pytest.mark.guard
@pytest.mark.parametrize(
    "params",
    [
        {"stop_token_ids": []},
        {"stop_token_ids": (0, 0, 10**30), "ignore_eos": True},
        {"min_tokens": 0},
        {"min_tokens": 8, "stop_token_ids": [5]},
    ],
)
def test_parameters_at_their_edges_are_accepted(params: dict[str, Any]) -> None:
    SamplingParams(max_tokens=8, **params).validate()


def test_a_request_is_ended_by_its_own_tokens_and_by_those_of_the_model() -> None:
    eos = frozenset({2, 3})
    assert SamplingParams().end_ids(eos) == {2, 3}
    assert SamplingParams(stop_token_ids=[3, 9]).end_ids(eos) == {2, 3, 9}
    # ignore_eos is about the model's, the others were asked for.
    assert SamplingParams(stop_token_ids=(9,), ignore_eos=True).end_ids(eos) == {9}
    assert SamplingParams(ignore_eos=True).end_ids(eos) == frozenset()
    assert eos == {2, 3}


# --- Lifecycle --------------------------------------------------------------------------------

WAYS = {
    ("WAITING", "PREFILL"),
    ("WAITING", "ABORTED"),
    ("PREFILL", "DECODE"),
    ("PREFILL", "FINISHED"),
    ("PREFILL", "ABORTED"),
    ("DECODE", "FINISHED"),
    ("DECODE", "ABORTED"),
}
LAST_STATES = {
    "stop": State.FINISHED,
    "length": State.FINISHED,
    "abort": State.ABORTED,
    "timeout": State.ABORTED,
    "error": State.ABORTED,
}


def test_a_state_leads_to_these_and_to_no_other() -> None:
    for old, new in itertools.product(State, State):
        if (old.name, new.name) in WAYS:
            check_transition(old, new)
        else:
            with pytest.raises(AssertionError, match=f"{old.name}.*{new.name}"):
                check_transition(old, new)


def test_only_who_said_all_that_it_had_to_say_is_finished() -> None:
    assert {reason: last_state(reason) for reason in LAST_STATES} == LAST_STATES  # type: ignore[arg-type]


# --- A request --------------------------------------------------------------------------------


def timed(**limits: Any) -> Request:
    return Request(0, [5, 6], 4, SamplingParams(), **limits)


def in_state(state: State) -> Request:
    """A request that has come there in the shortest way."""
    request = timed()
    for step in (State.PREFILL, State.DECODE):
        if state in (State.PREFILL, State.DECODE) and request.state is not state:
            request.move(step)
    if state in (State.FINISHED, State.ABORTED):
        request.end("abort")
        request.state = state
    return request


def test_a_request_moves_only_where_a_way_leads() -> None:
    request = timed()
    assert request.state is State.WAITING
    with pytest.raises(AssertionError, match=r"WAITING.*DECODE"):
        request.move(State.DECODE)
    assert request.state is State.WAITING
    request.move(State.PREFILL)
    request.move(State.DECODE)
    with pytest.raises(AssertionError, match="from DECODE to PREFILL"):
        request.move(State.PREFILL)
    assert (request.state, request.finish_reason) == (State.DECODE, None)


@pytest.mark.parametrize("reason", LAST_STATES)
def test_a_request_ends_from_each_state_that_it_may_end_from(reason: Any) -> None:
    for state in State:
        request, before = in_state(state), in_state(state)
        error = ValueError("what failed") if reason == "error" else None
        if (state.name, LAST_STATES[reason].name) in WAYS:
            request.end(reason, error)
            after = request.state, request.finish_reason, request.error
            assert after == (LAST_STATES[reason], reason, error)
        else:
            with pytest.raises(AssertionError, match=state.name):
                request.end(reason, error)
            assert vars(request) == vars(before) | {"sampling_params": request.sampling_params}


def test_a_request_without_limits_is_never_late() -> None:
    request = timed()
    assert not any(request.is_late(now) for now in (-1e9, 0.0, 1e9))


@pytest.mark.parametrize("start", [0.0, -7.5, 1e6])
def test_a_request_is_late_from_its_timeout_on(start: float) -> None:
    """Counted from the first step that sees it, whenever that is, and in each state."""
    request = timed(timeout=5.0)
    assert not request.is_late(start)
    assert request.arrival == start
    for move in (None, State.PREFILL, State.DECODE):
        if move:
            request.move(move)
        seen = [request.is_late(start + after) for after in (0.0, 4.75, 5.0, 5.25, 100.0)]
        assert seen == [False, False, True, True, True]
    assert request.arrival == start


def test_a_queue_timeout_is_for_those_who_wait() -> None:
    request = timed(queue_timeout=2.0, timeout=5.0)
    seen = [request.is_late(now) for now in (10.0, 11.75, 12.0, 13.0)]
    assert seen == [False, False, True, True]
    request.move(State.PREFILL)
    assert [request.is_late(now) for now in (12.0, 14.75, 15.0)] == [False, False, True]
    request = timed(queue_timeout=2.0)
    assert not request.is_late(0.0)
    request.move(State.PREFILL)
    assert not request.is_late(1e9)


def test_the_shorter_of_two_limits_counts() -> None:
    request = timed(queue_timeout=9.0, timeout=5.0)
    assert [request.is_late(now) for now in (0.0, 4.0, 5.0)] == [False, False, True]


@pytest.mark.parametrize(
    ("params", "last", "reason"),
    [
        ({"stop_token_ids": [9]}, 9, "stop"),
        ({"stop_token_ids": [8, 9], "ignore_eos": True}, 9, "stop"),
        pytest.param({"stop_token_ids": [9]}, 2, "stop", marks=pytest.mark.guard),
        pytest.param({"stop_token_ids": [9], "ignore_eos": True}, 2, None, marks=pytest.mark.guard),
    ],
)
def test_a_token_that_ends_the_request_is_a_stop(
    params: dict[str, Any], last: int, reason: str | None
) -> None:
    for room in (1, 0):  # a stop, even where it is the last token anyway
        ids = torch.tensor([4, 5], dtype=torch.int32)
        req = Req(ids, 0, 0, 1 + room, 0, SamplingParams(**params), NO_HANDLE)
        req.append_host(torch.tensor([last], dtype=torch.int32))
        assert finish_reason(req, frozenset({2})) == (reason or (None if room else "length"))


# --- The sampler ------------------------------------------------------------------------------


def sampling_req(num_generated: int, **params: Any) -> Req:
    """A request whose prompt has two tokens, before the pass of its next token."""
    ids = torch.tensor([4, 5, *[6] * num_generated], dtype=torch.int32)
    req = Req(ids[:2], 0, 0, num_generated + 1, 0, SamplingParams(**params), NO_HANDLE)
    req.append_host(ids[2:])
    req.device_len += num_generated
    return req


def args_of(*reqs: Req, vocab_size: int = 10, eos_ids: Sequence[int] = (2,)) -> SamplingArgs:
    pool = torch.zeros(1, 32, dtype=torch.int32)
    return make_args([*reqs], pool, vocab_size, 0, frozenset(eos_ids))


def banned(*reqs: Req, **options: Any) -> dict[int, set[int]]:
    return {row: set(ids) for row, ids in args_of(*reqs, **options).banned}


def test_what_would_end_a_request_is_banned_until_there_are_enough_tokens() -> None:
    for num_generated in range(5):
        req = sampling_req(num_generated, min_tokens=3)
        assert banned(req) == ({0: {2}} if num_generated < 3 else {})


def test_each_row_is_banned_what_ends_it() -> None:
    reqs = [
        sampling_req(0),
        sampling_req(0, min_tokens=1, stop_token_ids=[7, 8]),
        sampling_req(0, stop_token_ids=[7]),
        sampling_req(0, min_tokens=1, stop_token_ids=[7], ignore_eos=True),
    ]
    assert banned(*reqs) == {1: {2, 7, 8}, 3: {7}}


def test_an_id_beyond_the_vocabulary_needs_no_ban() -> None:
    req = sampling_req(0, min_tokens=1, stop_token_ids=[9, 10, 10**30])
    assert banned(req, eos_ids=[2, 11]) == {0: {2, 9}}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"temperature": 1.0},
        {"temperature": 1e-4, "top_p": 0.1},
        {"temperature": 5.0, "top_k": 2},
        {"top_k": 1, "temperature": 3.0},
        {"top_p": 0.5},
        {"repetition_penalty": 0.01, "frequency_penalty": -2.0},
        {"min_p": 1.0, "temperature": 1.0},
    ],
)
def test_a_banned_token_is_never_chosen_and_the_neighbours_are_free(params: dict[str, Any]) -> None:
    """Not even where it is all but certain."""
    logits = torch.tensor([0.0, 1.0, 50.0, 2.0, 0.5, -1.0, 40.0, 0.0]).repeat(3, 1)
    before = logits.clone()
    for seed in range(30):
        held = sampling_req(1, min_tokens=2, stop_token_ids=[6], seed=seed, **params)
        free = sampling_req(1, stop_token_ids=[6], seed=seed)
        args = args_of(free, held, free, vocab_size=8)
        tokens = sample(logits, args).tolist()
        assert tokens[0] == tokens[2] == 2
        assert tokens[1] in {0, 1, 3, 4, 5, 7}
    assert torch.equal(logits, before), "the scores belong to the caller"


def test_without_the_banned_the_others_share_the_probability() -> None:
    logits = torch.tensor([[1.0, 2.0, 9.0, 0.0]])
    counts = [0] * 4
    for seed in range(2000):
        req = sampling_req(0, min_tokens=1, temperature=1.0, seed=seed)
        counts[int(sample(logits, args_of(req, vocab_size=4)))] += 1
    for count, share in zip(counts, torch.tensor([1.0, 2.0, -INF, 0.0]).softmax(0), strict=True):
        assert abs(count / 2000 - share) < 0.04


@pytest.mark.parametrize("params", [{}, {"temperature": 1.0}, {"temperature": 1.0, "top_p": 0.5}])
def test_where_everything_is_banned_the_choice_is_still_a_token(params: dict[str, Any]) -> None:
    """An id beyond the vocabulary would let the next pass fail for everybody."""
    req = sampling_req(0, min_tokens=1, stop_token_ids=[*range(8)], seed=1, **params)
    [token] = sample(torch.randn(1, 8), args_of(req, vocab_size=8)).tolist()
    assert 0 <= token < 8


def test_scores_that_are_no_numbers_are_found_beside_a_ban() -> None:
    logits = torch.zeros(2, 8)
    logits[0, 3] = NAN
    req = sampling_req(0, min_tokens=1)
    assert sample(logits, args_of(req, req, vocab_size=8)).tolist() == [-1, 0]
    filters = make_filters([req.sampling_params] * 2, [0.0] * 2, 8, torch.device("cpu"))
    args = SamplingArgs(filters, [], [None] * 2, [(0, [2])])
    assert sample(logits, args).tolist()[0] == -1


# --- The cache manager ------------------------------------------------------------------------


class Cache:
    """A cache manager, and requests that hold what it gives."""

    def __init__(self, num_pages: int = 20, page_size: int = 4) -> None:
        self.page_table = torch.zeros(8, 64, dtype=torch.int32)
        self.manager = CacheManager(num_pages, page_size, self.page_table)
        self.reqs: list[Req] = []

    def reserve(self, ids: list[int], output_len: int = 4) -> Req:
        row = len(self.reqs)
        handle = self.manager.reserve(row, ids, len(ids) + output_len - 1)
        assert handle is not None
        prompt = torch.tensor(ids, dtype=torch.int32)
        cached = handle.cached_len
        req = Req(prompt, row, cached, output_len, row, SamplingParams(), handle)
        self.reqs.append(req)
        return req

    def compute(self, req: Req) -> None:
        """A pass has succeeded."""
        req.complete_one()
        req.append_host(torch.tensor([9], dtype=torch.int32))

    def learn(self, ids: list[int]) -> None:
        """Let the tree know a prompt."""
        req = self.reserve(ids, 1)
        self.compute(req)
        self.manager.cache_req(req)
        self.leave(req)

    def leave(self, req: Req) -> None:
        self.manager.drop(req)
        self.reqs.remove(req)
        self.manager.check_invariants(self.reqs)

    def num_free(self) -> int:
        return self.manager._allocator.num_free


def test_it_says_how_many_tokens_are_known_in_whole_pages() -> None:
    cache = Cache()
    assert cache.manager.num_cached_tokens([*range(11)]) == 0
    cache.learn([*range(11)])
    known = [cache.manager.num_cached_tokens([*range(n)]) for n in (0, 3, 4, 7, 8, 11, 20)]
    assert known == [0, 0, 4, 4, 8, 8, 8]
    assert cache.manager.num_cached_tokens([1, *range(10)]) == 0
    cache.manager.check_invariants([])  # to ask takes nothing


@pytest.mark.parametrize("computed", [False, True])
def test_what_is_dropped_is_kept_by_nobody(computed: bool) -> None:
    cache = Cache()
    req = cache.reserve([*range(11)])
    if computed:
        cache.compute(req)
    cache.leave(req)
    assert cache.num_free() == 20
    assert cache.manager.num_cached_tokens([*range(11)]) == 0


def test_what_others_had_computed_before_stays_when_a_request_is_dropped() -> None:
    cache = Cache()
    cache.learn([*range(8)])
    one, other = cache.reserve([*range(11)]), cache.reserve([*range(11)])
    assert one.cached_len == other.cached_len == 8
    cache.leave(one)
    assert cache.manager.num_cached_tokens([*range(11)]) == 8
    cache.leave(other)
    assert cache.manager.num_cached_tokens([*range(11)]) == 8
    assert cache.num_free() == 20 - 2
    # Nobody protects it any more: all of the pool can be reclaimed.
    assert cache.manager.reserve(0, [50], 80) is not None


def test_the_tree_keeps_the_prompt_of_a_request_that_is_dropped_later() -> None:
    cache = Cache()
    req = cache.reserve([*range(11)], output_len=9)
    cache.compute(req)
    cache.manager.cache_req(req)
    for _ in range(5):
        cache.compute(req)
    cache.leave(req)
    assert cache.manager.num_cached_tokens([*range(11), *[9] * 6]) == 8


# --- The trace --------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first event happens at 1 s, the next ones a second later each."""
    ticks = itertools.count(1)
    monkeypatch.setattr(minisgl.scheduler.trace, "perf_counter", lambda: float(next(ticks)))


def some_trace() -> Trace:
    """Request 7 has two tokens; 8 waits, then fails with its first pass; 9 never begins."""
    trace = Trace()
    trace.add("add", uid=7, num_tokens=3)
    trace.add("add", uid=8, num_tokens=2)
    trace.add("launch", phase="prefill", lengths={7: (0, 3)})
    trace.add("result", tokens={7: 50})
    trace.add("add", uid=9, num_tokens=1)
    trace.add("launch", phase="decode", lengths={7: (3, 4)})
    trace.add("result", tokens={7: 51})
    trace.add("finish", uid=7, reason="length")
    trace.add("launch", phase="prefill", lengths={8: (1, 2)})
    trace.add("finish", uid=8, reason="error")
    trace.add("finish", uid=9, reason="abort")
    return trace


def spans_by_row(path: Path) -> dict[int, list[tuple[str, float, float]]]:
    rows: dict[int, list[tuple[str, float, float]]] = {}
    for span in json.loads(path.read_text("utf-8"))["traceEvents"]:
        assert span["ph"] == "X"
        name, start, end = span["name"], span["ts"], span["ts"] + span["dur"]
        rows.setdefault(span["tid"], []).append((name, start / 1e6, end / 1e6))
    return {row: sorted(spans, key=lambda span: span[1]) for row, spans in rows.items()}


def test_events_are_written_as_a_line_of_json_each(clock: None, tmp_path: Path) -> None:
    trace = some_trace()
    assert trace.events[0] == {"time": 1.0, "event": "add", "uid": 7, "num_tokens": 3}
    trace.write(tmp_path / "trace.jsonl")
    text = (tmp_path / "trace.jsonl").read_text("utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    assert [event["event"] for event in events] == [event["event"] for event in trace.events]
    assert [event["time"] for event in events] == [float(n) for n in range(1, 12)]
    assert events[2]["lengths"] == {"7": [0, 3]}
    assert events[-1] == {"time": 11.0, "event": "finish", "uid": 9, "reason": "abort"}
    assert text.endswith("}\n")


def test_a_timeline_has_the_passes_and_the_states_of_each_request(
    clock: None, tmp_path: Path
) -> None:
    some_trace().write_chrome(tmp_path / "trace.json")
    assert spans_by_row(tmp_path / "trace.json") == {
        0: [("prefill", 3.0, 4.0), ("decode", 6.0, 7.0)],
        8: [("waiting", 1.0, 3.0), ("prefill", 3.0, 4.0), ("decode", 4.0, 8.0)],
        9: [("waiting", 2.0, 9.0), ("prefill", 9.0, 10.0)],
        10: [("waiting", 5.0, 11.0)],
    }


def test_a_trace_of_nothing_is_written_too(tmp_path: Path) -> None:
    Trace().write(tmp_path / "trace.jsonl")
    Trace().write_chrome(tmp_path / "trace.json")
    assert (tmp_path / "trace.jsonl").read_text("utf-8") == ""
    assert json.loads((tmp_path / "trace.json").read_text("utf-8")) == {"traceEvents": []}


# --- Who gets one more token ------------------------------------------------------------------


def test_all_who_decode_are_computed_in_the_order_in_which_they_came() -> None:
    manager = DecodeManager()
    assert manager.schedule() == []
    requests = [make_request(uid, [5], 2) for uid in (4, 1, 3)]
    for request in requests:
        ids = torch.tensor([5], dtype=torch.int32)
        request.req = Req(ids, request.uid, 0, 2, request.uid, SamplingParams(), NO_HANDLE)
        manager.running[request.uid] = request
    assert manager.schedule() == requests
    del manager.running[1]
    assert manager.schedule() == [requests[0], requests[2]]


# --- Who is let in ----------------------------------------------------------------------------


class Admission:
    """A prefill manager with its table and its cache."""

    def __init__(self, num_pages: int = 99, page_size: int = 4, num_rows: int = 4) -> None:
        page_table = torch.zeros(num_rows, 200, dtype=torch.int32)
        self.table = TableManager(page_table)
        self.cache = CacheManager(num_pages, page_size, page_table)
        self.manager = prefill_manager(self.table, self.cache, page_size)
        self.uids = itertools.count()

    def add(self, prompt: list[int], output_len: int = 1) -> Request:
        request = make_request(next(self.uids), prompt, output_len)
        self.manager.waiting[request.uid] = request
        return request

    def schedule(self) -> list[int]:
        budget = [10**6] if BUDGETED else []  # never short of it
        return [request.uid for request in self.manager.schedule(*budget)]

    def compute(self) -> None:
        """The pass of those who were admitted; each ends with its first token."""
        for request in self.manager.running.values():
            request.req.complete_one()
            request.req.append_host(torch.tensor([9], dtype=torch.int32))
            self.cache.cache_req(request.req)
            self.cache.drop(request.req)
            self.table.free(request.req.table_idx)
        self.manager.running.clear()


def test_who_is_admitted_has_a_row_and_pages_and_is_in_prefill() -> None:
    place = Admission()
    request = place.add([5, 6, 7, 8, 9, 10], output_len=3)
    assert place.schedule() == [0]
    req = request.req
    assert (request.state, req.uid, req.cached_len, req.device_len) == (State.PREFILL, 0, 0, 6)
    assert (req.output_len, req.sampling_params) == (3, request.sampling_params)
    assert len(req.cache_handle.pages) == 2  # eight tokens with KV: the last has none
    assert place.table.token_pool[req.table_idx, :6].tolist() == [5, 6, 7, 8, 9, 10]
    assert not place.manager.waiting
    place.table.check_invariants([req])
    place.cache.check_invariants([req])


def test_rows_go_to_the_first_who_came() -> None:
    place = Admission(num_rows=3)
    for uid in range(5):
        place.add(apart(uid))
    assert place.schedule() == [0, 1, 2]
    assert [*place.manager.waiting] == [3, 4]
    place.compute()
    assert place.schedule() == [3, 4]


def test_nobody_overtakes_a_request_that_does_not_fit() -> None:
    place = Admission(num_pages=10)
    place.add(apart(0, 12), output_len=5)  # 4 pages of 10
    place.add(apart(1, 25), output_len=4)  # 7
    place.add(apart(2, 3))  # 1, and there is room for it
    assert place.schedule() == [0]
    assert place.manager.waiting[1].state is State.WAITING
    place.compute()
    assert place.schedule() == [1, 2]


def test_who_does_not_fit_leaves_no_trace() -> None:
    place = Admission(num_pages=10)
    first = place.add(apart(0, 12), output_len=5)
    place.add([*first.input_ids[:8], *range(50, 70)])
    assert place.schedule() == [0]
    for _ in range(3):
        assert place.schedule() == [0]
        place.table.check_invariants([first.req])
        place.cache.check_invariants([first.req])


def test_a_prompt_that_is_known_is_computed_from_there_on() -> None:
    place = Admission()
    place.add([*range(5, 25)])
    place.schedule()
    place.compute()
    request = place.add([*range(5, 25)])
    place.schedule()
    assert request.num_cached_tokens == request.req.cached_len == 16  # never the whole prompt
    assert request.req.device_len == 20


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_who_shares_enough_with_one_of_this_step_waits_for_the_next(page_size: int) -> None:
    """Then it computes only its own rest."""
    place = Admission(page_size=page_size)
    shared = [*range(5, 5 + MIN_SHARED_TOKENS)]
    place.add([*shared, 60])
    second = place.add([*shared, 61, 62])
    assert place.schedule() == [0]
    assert (second.state, [*place.manager.waiting]) == (State.WAITING, [1])
    place.compute()
    assert place.schedule() == [1]
    assert second.req.cached_len == second.num_cached_tokens == MIN_SHARED_TOKENS


@pytest.mark.parametrize(
    ("page_size", "num_shared", "waits"),
    [(1, 31, False), (1, 32, True), (2, 33, True), (3, 32, False), (3, 33, True),
     (16, 31, False), (16, 47, True), (64, 63, False), (64, 64, True)],
)  # fmt: skip
def test_shared_tokens_count_in_whole_pages(page_size: int, num_shared: int, waits: bool) -> None:
    place = Admission(page_size=page_size)
    shared = [*range(5, 5 + num_shared)]
    place.add([*shared, 1])
    place.add([*shared, 2])
    assert place.schedule() == ([0] if waits else [0, 1])


@pytest.mark.parametrize(("length", "waits"), [(32, False), (33, True)])
def test_of_the_same_prompt_the_last_token_is_computed_anyway(length: int, waits: bool) -> None:
    place = Admission(page_size=1)
    for _ in range(3):
        place.add([7] * length)
    assert place.schedule() == ([0] if waits else [0, 1, 2])
    place.compute()
    assert place.schedule() == ([1, 2] if waits else [])


def test_nobody_waits_for_what_the_cache_knows_already() -> None:
    place = Admission(page_size=1)
    known = [*range(5, 65)]
    place.add(known)
    place.schedule()
    place.compute()
    for last in (1, 2):
        place.add([*known, last])
    assert place.schedule() == [1, 2]


@pytest.mark.parametrize(("num_new", "waits"), [(31, False), (32, True)])
def test_of_what_is_shared_only_the_uncached_part_counts(num_new: int, waits: bool) -> None:
    place = Admission(page_size=1, num_pages=200)
    known = [*range(5, 45)]
    place.add([*known, 1])
    place.schedule()
    place.compute()
    new = [*range(50, 50 + num_new)]
    place.add([*known, *new, 2])
    place.add([*known, *new, 3])
    assert place.schedule() == ([1] if waits else [1, 2])


def test_others_go_on_while_somebody_waits_for_a_prefix() -> None:
    """Even one that shares a prefix only with the waiting one."""
    place = Admission(page_size=1, num_rows=8)
    shared = [*range(5, 45)]
    place.add(shared)  # 0
    place.add([*shared, 60, *range(70, 110)])  # 1: waits for 0
    place.add(apart(2))
    place.add([60, *range(70, 110)])  # 3
    place.add([*shared, 60, *range(70, 110)])  # 4: waits for 0, then for 1
    assert place.schedule() == [0, 2, 3]
    assert [*place.manager.waiting] == [1, 4]
    place.compute()
    assert place.schedule() == [1]
    place.compute()
    assert place.schedule() == [4]


def test_who_waited_for_a_prefix_is_first_in_the_next_step() -> None:
    place = Admission(page_size=1, num_rows=2)
    shared = [*range(5, 45)]
    for prompt in ([*shared, 1], [*shared, 2], apart(2), apart(3), apart(4)):
        place.add(prompt)
    assert place.schedule() == [0, 2]
    place.compute()
    assert place.schedule() == [1, 3]


# --- The scheduler ----------------------------------------------------------------------------


def test_who_comes_is_computed_in_the_next_step() -> None:
    server = Server()
    first = server.add(apart(0), 6)
    server.step(2)
    later = server.add(apart(1), 3)
    server.step()
    assert len(later.token_ids) == 1
    server.drain(first, later)
    passes = server.passes()
    assert passes[:2] == [[0], [0]] and 1 in passes[2] and passes[3] == [0, 1]


def test_who_has_ended_makes_room_in_the_next_step() -> None:
    server = Server(max_running_reqs=2)
    requests = [server.add(apart(uid), n) for uid, n in enumerate([3, 1, 2, 2, 1])]
    server.drain(*requests)
    passes = server.passes()
    mine = [[n for n, one in enumerate(passes) if uid in one] for uid in range(5)]
    assert passes[0] == [0, 1] and max(map(len, passes)) == 2
    for uid in (2, 3, 4):
        assert mine[uid][0] - 1 in [theirs[-1] for theirs in mine[:uid]]


def test_who_has_ended_is_computed_no_more() -> None:
    server = Server()
    requests = [server.add(apart(uid), n) for uid, n in enumerate([3, 1, 4, 2])]
    server.drain(*requests)
    assert server.passes() == [[0, 1, 2, 3], [0, 2, 3], [0, 2], [2]]


def test_a_step_gives_each_of_its_requests_one_token() -> None:
    server = Server()
    requests = [server.add(apart(uid), 4) for uid in range(3)]
    for number in range(1, 5):
        server.step()
        assert [len(request.token_ids) for request in requests] == [number] * 3
        state = State.FINISHED if number == 4 else State.DECODE
        assert [request.state for request in requests] == [state] * 3


def test_a_step_without_requests_does_nothing() -> None:
    server = Server()
    server.step(3)
    assert server.passes() == []
    server.drain(server.add(apart(0), 2))
    server.step(3)
    assert len(server.passes()) == 2


def test_a_prompt_is_in_the_cache_once_its_pass_is_done() -> None:
    server = Server()
    running = server.add([*range(5, 25)], 9)
    server.step()
    later = server.add([*range(5, 25)], 2)
    server.step()
    assert later.num_cached_tokens == 16
    server.drain(running, later)


def test_whose_first_token_is_its_last_is_never_in_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    moves: list[State] = []
    original = Request.move

    def move(self: Request, state: State) -> None:
        moves.append(state)
        original(self, state)

    monkeypatch.setattr(Request, "move", move)
    server = Server()
    request = server.add(apart(0))
    server.step()
    assert (request.state, moves) == (State.FINISHED, [State.PREFILL])
    assert server.is_empty()


def test_a_token_that_ends_an_answer_ends_it_at_once() -> None:
    server = Server(letters=3, eos_ids=[3])
    answer = server.engine.answer(apart(0), 30)
    end = answer.index(3) + 1
    one, other = server.add(apart(0), 30), server.add([*apart(0)], 30, ignore_eos=True)
    own = server.add(apart(0), 30, ignore_eos=True, stop_token_ids=[answer[0]])
    server.step(31)
    assert (one.token_ids, one.finish_reason) == (answer[:end], "stop")
    assert (other.token_ids, other.finish_reason) == (answer, "length")
    assert (own.token_ids, own.finish_reason) == (answer[:1], "stop")
    assert server.is_empty()


def test_the_sampler_is_told_what_may_not_end_an_answer_yet() -> None:
    server, seen = Server(eos_ids=[2]), []
    original = server.engine.forward_batch

    def watch(batch: Batch) -> Any:
        seen.append({row: {*ids} for row, ids in batch.sampling_args.banned})
        return original(batch)

    server.add(apart(0), 3)
    server.add(apart(1), 3, min_tokens=2, stop_token_ids=[9])
    with passes_by(server.engine, watch):
        server.step(3)
    assert seen == [{1: {2, 9}}, {1: {2, 9}}, {}]


def test_200_requests_go_over_4_rows() -> None:
    server, chance = Server(letters=3), random.Random(0)
    requests = [
        server.add([5 + chance.randrange(2) for _ in range(chance.randint(1, 30))], n)
        for n in chance.choices(range(1, 20), k=200)
    ]
    server.drain(*requests)
    assert max(map(len, server.passes())) == 4
    assert server.is_empty()


def test_no_request_waits_longer_than_those_before_it_take() -> None:
    """Large ones get their turn, though small ones that would fit come all the time."""
    longest = 8
    for seed in range(10):
        server, chance = Server(num_pages=12, max_seq_len=49), random.Random(seed)
        waiting: dict[Request, int] = {}  # how many steps it may wait
        for _ in range(150):
            if chance.random() < 0.7:
                length = chance.choice([2, 3, 40])
                prompt = [5 + chance.randrange(2) for _ in range(length)]
                request = server.add(prompt, chance.randint(1, longest))
                waiting[request] = (len(waiting) + 1) * (longest + 1)
            server.step()
            waiting = {r: n - 1 for r, n in waiting.items() if r.state is State.WAITING}
            assert all(bound > 0 for bound in waiting.values())


def test_a_large_request_is_not_overtaken_by_small_ones() -> None:
    server = Server(num_pages=10, max_seq_len=41)
    running = server.add(apart(0, 8), 9)
    server.step()
    large = server.add(apart(1, 30), 4)
    small = [server.add(apart(uid, 3), 2) for uid in range(2, 6)]
    server.step(8)
    assert running.finish_reason == "length" and large.state is State.WAITING
    server.step()
    assert len(large.token_ids) == 1
    server.drain(large, *small)
    begun = [uid for n, batch in enumerate(server.passes()) for uid in batch]
    assert [*dict.fromkeys(begun)] == [0, 1, 2, 3, 4, 5]


def test_a_request_that_could_never_run_is_refused_and_takes_nothing() -> None:
    server = Server(max_seq_len=20)
    for prompt, output_len in ((20, 1), (1, 20), (500, 500)):
        with pytest.raises(ValueError, match=f"at most 20 tokens, got {prompt + output_len}: "):
            server.add([5] * prompt, output_len)
    fits = server.add([5] * 19, 1)
    server.step()
    assert fits.finish_reason == "length" and server.passes() == [[fits.uid]]


def test_two_requests_with_one_number_are_an_error() -> None:
    server = Server()
    server.scheduler.add(make_request(3, [5], 3))
    for _ in ("waiting", "running"):
        with pytest.raises(AssertionError, match="request 3"):
            server.scheduler.add(make_request(3, [6], 2))
        server.step()


# --- Requests that begin alike ----------------------------------------------------------------

SYSTEM = [*range(10, 50)]  # 40 tokens


def test_what_requests_of_one_step_share_is_computed_once() -> None:
    server = Server(max_seq_len=64, num_pages=60, max_running_reqs=8)
    requests = [server.add([*SYSTEM, 60 + n], 3) for n in range(4)]
    server.step(2)
    assert server.passes()[0] == [0] and all(request.token_ids for request in requests)
    lengths = [pair for batch in server.engine.batches for pair in batch.values()]
    assert sum(end - begin for begin, end in lengths if end == 41) == 41 + 3 * 1  # of prompts
    server.drain(*requests)


def test_who_waits_for_a_prefix_waits_one_step_and_others_do_not() -> None:
    server = Server(max_seq_len=64, num_pages=60, max_running_reqs=8)
    first, waits = server.add([*SYSTEM, 60], 3), server.add([*SYSTEM, 61], 3)
    other = server.add(apart(2), 3)
    server.step()
    assert [len(r.token_ids) for r in (first, waits, other)] == [1, 0, 1]
    assert (waits.state, waits.num_cached_tokens) == (State.WAITING, 0)
    server.step()
    assert (len(waits.token_ids), waits.num_cached_tokens) == (1, 40)
    server.drain(first, waits, other)


def test_nobody_waits_for_a_prefix_that_is_known_or_too_short() -> None:
    server = Server(max_seq_len=64, num_pages=80, max_running_reqs=8)
    server.drain(server.add(SYSTEM))
    server.drain(*[server.add([*SYSTEM, 60 + n]) for n in range(3)])
    server.drain(*[server.add([9, *SYSTEM[:30], 60 + n]) for n in range(3)])
    assert server.passes() == [[0], [1, 2, 3], [4, 5, 6]]


def test_who_waited_for_a_prefix_that_never_came_computes_it() -> None:
    server = Server(max_seq_len=64, num_pages=60)
    first, second = server.add([*SYSTEM, 60], 3), server.add([*SYSTEM, 61], 3)
    with failing(server, Failure()):
        server.step()
    assert (first.finish_reason, second.state) == ("error", State.WAITING)
    server.drain(second)
    assert second.num_cached_tokens == 0


def test_who_waited_for_a_prefix_may_be_aborted_or_late() -> None:
    server = Server(max_seq_len=64, num_pages=60)
    requests = [server.add([*SYSTEM, 60 + n], 3, {"queue_timeout": 4.0}) for n in range(3)]
    server.step()
    server.scheduler.abort(1)
    server.step(now=4.0)
    assert [request.finish_reason for request in requests] == [None, "abort", "timeout"]
    server.drain(requests[0])


# --- Ended from outside -----------------------------------------------------------------------


def brought_to(server: Server, state: State, limits: Any = None) -> Request:
    """A request in this state; where it waits, another one has the only row."""
    if state is State.WAITING:
        server.add(apart(50), 9)
    request = server.add(apart(51), 9, limits)
    server.step(2)
    assert request.state is state
    return request


@pytest.mark.parametrize("state", [State.WAITING, State.DECODE])
@pytest.mark.parametrize("reason", ["abort", "timeout"])
def test_a_request_may_be_ended_in_each_state(state: State, reason: str) -> None:
    server = Server(max_running_reqs=1)
    limits = {"timeout": 3.0} if reason == "timeout" else None
    request = brought_to(server, state, limits)
    tokens = [*request.token_ids]
    if reason == "abort":
        server.scheduler.abort(request.uid)
    assert request.state is state, "before the next step nothing happens"
    server.step(now=3.0)
    assert (request.finish_reason, request.state) == (reason, State.ABORTED)
    assert request.token_ids == tokens == server.answer(request)[: len(tokens)]
    assert request.error is None
    server.step(9)
    assert server.is_empty()


@pytest.mark.parametrize("times", [1, 2])
def test_an_abort_in_the_middle_of_a_prefill_counts_from_the_next_step(times: int) -> None:
    server = Server()
    request, neighbour = server.add(apart(0), 9), server.add(apart(1), 9)
    original = server.engine.forward_batch

    def aborting(batch: Batch) -> Any:
        assert request.state is State.PREFILL
        for _ in range(times):
            server.scheduler.abort(request.uid)
        return original(batch)

    with passes_by(server.engine, aborting):
        server.step()
    assert (request.state, len(request.token_ids)) == (State.DECODE, 1)
    server.step()
    assert (request.finish_reason, len(request.token_ids)) == ("abort", 1)
    server.drain(neighbour)
    assert server.passes()[:2] == [[0, 1], [1]]


def test_to_abort_twice_or_too_late_or_nobody_changes_nothing() -> None:
    server = Server()
    ended, twice, stays = (server.add(apart(uid), n) for uid, n in enumerate([1, 9, 5]))
    server.step()
    for uid in (ended.uid, twice.uid, twice.uid, 99, -1):
        server.scheduler.abort(uid)
    server.step()
    for uid in (ended.uid, twice.uid):
        server.scheduler.abort(uid)
    server.drain(stays)
    assert [ended.finish_reason, twice.finish_reason] == ["length", "abort"]
    assert server.is_empty()


def test_an_abort_of_nobody_is_forgotten() -> None:
    server = Server()
    server.scheduler.abort(0)
    server.step()
    server.drain(server.add(apart(0), 3))


def test_what_the_aborted_had_is_free_in_the_same_step() -> None:
    server = Server(max_running_reqs=1, num_pages=10, max_seq_len=41)
    running, waiting = server.add(apart(0, 30), 9), server.add(apart(1, 30), 9)
    server.step(3)
    server.scheduler.abort(running.uid)
    server.step()
    assert len(waiting.token_ids) == 1


def test_the_kv_of_the_aborted_and_the_late_is_kept_for_others() -> None:
    """What was computed is right, whoever it was computed for."""
    server = Server()
    for reason in ("abort", "timeout"):
        prompt = apart(len(reason), 17)
        request = server.add(prompt, 9, {"timeout": 5.0} if reason == "timeout" else None)
        server.step(5)
        server.scheduler.abort(request.uid if reason == "abort" else -1)
        server.step(now=5.0)
        assert request.finish_reason == reason
        again = server.add([*prompt, *request.token_ids], 2)
        server.drain(again)
        assert again.num_cached_tokens == 20  # 17 and 4 of the answer, in whole pages


def test_a_request_is_late_at_the_first_step_from_its_timeout_on() -> None:
    server = Server()
    for now, reason in ((4.0, None), (4.999, None), (5.0, "timeout"), (50.0, "timeout")):
        request = server.add(apart(0), 9, {"timeout": 5.0})
        server.step(now=0.0)
        server.step(now=now)
        assert (request.finish_reason, len(request.token_ids)) == (reason, 1 + (reason is None))
        server.scheduler.abort(request.uid)
        server.step()


def test_a_timeout_counts_from_the_first_step_after_add() -> None:
    """The scheduler knows no other time; who waits is seen as well."""
    server = Server(max_running_reqs=1)
    first = server.add(apart(0), 9)
    server.step(now=0.0)
    late = server.add(apart(1), 9, {"timeout": 5.0})
    reasons = []
    for now in (100.0, 104.0, 105.0):
        server.step(now=now)
        reasons.append(late.finish_reason)
    assert (late.arrival, reasons) == (100.0, [None, None, "timeout"])
    server.drain(first)


def test_a_queue_timeout_ends_only_who_has_not_begun() -> None:
    server = Server(max_running_reqs=1)
    running = server.add(apart(0), 9, {"queue_timeout": 2.0})
    waits = server.add(apart(1), 9, {"queue_timeout": 2.0})
    reasons = []
    for now in (0.0, 1.0, 1.999, 2.0):
        server.step(now=now)
        reasons.append(waits.finish_reason)
    assert reasons == [None, None, None, "timeout"]
    assert (waits.state, waits.token_ids) == (State.ABORTED, [])
    server.step(6, now=1e6)
    assert running.finish_reason == "length"


def test_who_is_late_just_before_its_turn_does_not_run() -> None:
    """Time-outs are looked at first, then rows are given."""
    server = Server(max_running_reqs=1)
    first = server.add(apart(0), 1)
    late, next_one = server.add(apart(1), 3, {"queue_timeout": 1.0}), server.add(apart(2), 3)
    server.step(now=0.0)
    server.step(now=1.0)
    assert [first.finish_reason, late.finish_reason] == ["length", "timeout"]
    assert len(next_one.token_ids) == 1


def test_who_was_aborted_and_is_late_was_aborted() -> None:
    server = Server()
    request = server.add(apart(0), 9, {"timeout": 1.0})
    server.step()
    server.scheduler.abort(request.uid)
    server.step(now=1.0)
    assert request.finish_reason == "abort"


# --- Failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [Failure("of the kernel"), MemoryError(), ValueError("x")])
def test_a_pass_that_fails_ends_those_who_were_in_it(error: Exception) -> None:
    server = Server(max_running_reqs=2)
    lost = [server.add(apart(uid), 5) for uid in range(2)]
    waiting = server.add(apart(2), 5)
    server.step(2)
    with failing(server, error):
        server.step()
    for request in lost:
        assert (request.finish_reason, request.state) == ("error", State.ABORTED)
        assert request.error is error
        assert request.token_ids == server.answer(request)[:2]
    assert waiting.state is State.WAITING
    server.drain(waiting)
    assert server.passes()[3] == [2]
    assert server.is_empty()


def test_a_prefill_that_fails_leaves_those_who_decode_alone() -> None:
    server = Server()
    running = server.add(apart(0), 6)
    server.step(2)
    lost = server.add(apart(1), 6)
    with failing(server, Failure()):
        server.step()
    assert [running.finish_reason, lost.finish_reason] == [None, "error"]
    server.drain(running)
    assert server.is_empty()


def test_nobody_reads_what_a_failed_pass_has_written() -> None:
    server = Server()
    prompt = apart(0, 21)
    lost = server.add(prompt, 5)
    with failing(server, Failure()):
        server.step()
    again = server.add(prompt, 5)
    server.drain(again)
    assert (lost.num_cached_tokens, again.num_cached_tokens) == (0, 0)


def test_a_failed_pass_costs_only_what_it_has_computed() -> None:
    """The prompt was computed by a pass that succeeded, and so was its beginning before."""
    server = Server(page_size=1)
    server.drain(server.add(apart(0, 10)))
    lost = server.add([*apart(0, 10), *range(60, 70)], 5)
    server.step(3)
    with failing(server, Failure()):
        server.step()
    again = server.add([*lost.input_ids, *lost.token_ids], 2)
    server.drain(again)
    assert (lost.num_cached_tokens, again.num_cached_tokens) == (10, 20)


def test_after_many_failures_everything_is_there() -> None:
    server = Server()
    with failing(server, Failure()):
        for turn in range(20):
            requests = [server.add(apart(uid, 9), 5) for uid in range(6)]
            server.step(2)
            assert [request.finish_reason for request in requests] == ["error"] * 6, turn
    assert server.is_empty()


@pytest.mark.parametrize("num_tokens", [0, 1, 3])
def test_a_row_without_scores_ends_alone(num_tokens: int) -> None:
    server = Server()
    before, lost, after = (server.add(apart(uid, 9), 6) for uid in range(3))
    server.step(num_tokens)
    with without_scores(server, lost.uid):
        server.step()
    assert (lost.finish_reason, lost.state) == ("error", State.ABORTED)
    assert "NaN" in str(lost.error)
    assert lost.token_ids == server.answer(lost)[:num_tokens]
    assert [before.finish_reason, after.finish_reason] == [None, None]
    server.drain(before, after)
    assert server.is_empty()


def test_the_kv_of_a_row_without_scores_is_not_kept() -> None:
    server = Server()
    lost, neighbour = server.add(apart(0, 21), 6), server.add(apart(1, 21), 6)
    with without_scores(server, lost.uid):
        server.step()
    again, beside = server.add(apart(0, 21)), server.add(apart(1, 21))
    server.drain(again, beside, neighbour)
    assert (again.num_cached_tokens, beside.num_cached_tokens) == (0, 20)


# --- Interrupts -------------------------------------------------------------------------------


@pytest.mark.parametrize("num_steps", [0, 1, 3])
def test_ctrl_c_leaves_the_step_and_those_who_wait_go_on(num_steps: int) -> None:
    server = Server(max_running_reqs=2)
    lost = [server.add(apart(uid, 9), 6) for uid in range(2)]
    waiting = [server.add(apart(uid, 9), 6) for uid in range(2, 5)]
    server.step(num_steps)
    with failing(server, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        server.step()
    server.drain(*waiting)
    for request in lost:
        assert (request.finish_reason, request.state) == ("error", State.ABORTED)
        assert "ask again" in str(request.error)
        assert request.token_ids == server.answer(request)[:num_steps]
    assert server.is_empty()


def test_after_ctrl_c_nothing_that_was_written_is_read() -> None:
    server = Server()
    server.drain(server.add(apart(0, 21)))
    server.add(apart(0, 21), 5)
    with failing(server, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        server.step()
    again = server.add(apart(0, 21), 5)
    server.drain(again)
    assert again.num_cached_tokens == 0


def test_a_request_that_is_added_after_ctrl_c_is_computed() -> None:
    server = Server()
    server.add(apart(0), 5)
    with failing(server, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        server.step()
    server.drain(server.add(apart(1), 5))


def test_a_trace_says_who_was_lost_by_ctrl_c() -> None:
    server = Server()
    server.scheduler.trace = trace = Trace()
    lost = server.add(apart(0), 5)
    with failing(server, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        server.step()
    server.step()
    last = trace.events[-1]
    assert (last["event"], last["uid"], last["reason"]) == ("finish", lost.uid, "error")


def test_an_interrupt_at_any_line_of_a_step_leaves_everything_usable() -> None:
    """Who ran is told so, who waits goes on, and what was aborted or late says so.

    A second Ctrl-C, while the first one's damage is repaired, changes nothing.
    """
    place: list[str] = ["not yet"]
    number, outcomes = 0, set()
    server = Server(page_size=2, num_pages=64, max_running_reqs=3)
    while place:
        number += 1
        running = [server.add(apart(uid), n) for uid, n in ((0, 2), (1, 9))]
        server.step(now=0.0)
        waiting = [server.add(apart(uid), 2) for uid in range(2, 5)]
        late = server.add(apart(5), 3, {"timeout": 5.0})
        unwanted: list[Request] = []
        with suppress(KeyboardInterrupt), interrupt_at(number) as place:
            for request in (running[1], waiting[2]):
                server.scheduler.abort(request.uid)
                unwanted.append(request)
            for now in (0.0, 1.0, 6.0):
                server.scheduler.step(now)
        with suppress(KeyboardInterrupt), interrupt_at(1 + number % 60):
            server.scheduler.check_invariants()
        server.scheduler.check_invariants()
        everybody = [*running, *waiting, late]
        for _ in range(16):
            server.step(now=6.0)
        for request in everybody:
            state, reason = request.state, request.finish_reason
            assert reason is not None and state is LAST_STATES[reason], (place, request)
            answer = server.answer(request)
            assert request.token_ids == answer[: len(request.token_ids)], place
            assert reason != "length" or request.token_ids == answer, place
            if reason == "error":
                assert "ask again" in str(request.error), place
            assert request not in unwanted or reason in ("abort", "error"), place
            outcomes.add((everybody.index(request), reason))
        server.drain(server.add(apart(6, 9), 3), server.add(apart(0), 3))
    assert number > 300
    assert {(0, "error"), (0, "length"), (1, "abort"), (2, "error"), (3, "length")} <= outcomes
    assert {(3, "error"), (4, "abort"), (5, "timeout")} <= outcomes


# --- Inputs, and nothing else -----------------------------------------------------------------


def some_workload(server: Server, seed: int) -> Trace:
    """Requests, aborts and time-outs at random steps."""
    chance = random.Random(seed)
    server.scheduler.trace = trace = Trace()
    requests: list[Request] = []
    for now in range(60):
        for _ in range(chance.choice([0, 0, 1, 3])):
            prompt = [5 + chance.randrange(2) for _ in range(chance.randint(1, 45))]
            limits = {"timeout": chance.choice([None, 9.0]), "queue_timeout": 3.0}
            requests.append(server.add(prompt, chance.randint(1, 9), limits))
        if requests and chance.random() < 0.2:
            server.scheduler.abort(chance.randrange(len(requests)))
        server.step(now=float(now))
    return trace


def untimed(trace: Trace) -> list[dict[str, Any]]:
    return [{key: value for key, value in e.items() if key != "time"} for e in trace.events]


def test_equal_inputs_give_equal_traces() -> None:
    for seed in range(3):
        first, second = (untimed(some_workload(Server(), seed)) for _ in range(2))
        assert first == second
        assert {event["event"] for event in first} == {"add", "launch", "result", "finish"}
        reasons = {event.get("reason") for event in first}
        assert {"length", "abort", "timeout"} <= reasons


def test_a_step_reads_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(max_running_reqs=1)
    server.scheduler.trace = None
    requests = [server.add(apart(uid), 3, {"timeout": 1.0}) for uid in range(2)]

    def forbidden(*_: Any) -> float:
        raise AssertionError("the scheduler looked at a clock")

    with monkeypatch.context() as patch:
        for name in ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns"):
            patch.setattr(time, name, forbidden)
            for module in (minisgl.scheduler.trace, minisgl.scheduler.scheduler):
                patch.setattr(module, name, forbidden, raising=False)
        server.step(3, now=0.0)
        server.step(now=1.0)
    assert [request.finish_reason for request in requests] == ["length", "timeout"]


# --- What is recorded -------------------------------------------------------------------------


def test_a_trace_tells_what_happened_in_order() -> None:
    server = Server(max_running_reqs=1)
    server.scheduler.trace = trace = Trace()
    server.add([5, 6, 7], 2)
    server.add([8], 1)
    server.step(3)
    one, two = server.engine.answer([5, 6, 7], 2)
    [other] = server.engine.answer([8], 1)
    assert untimed(trace) == [
        {"event": "add", "uid": 0, "num_tokens": 3},
        {"event": "add", "uid": 1, "num_tokens": 1},
        {"event": "launch", "phase": "prefill", "lengths": {0: (0, 3)}},
        {"event": "result", "tokens": {0: one}},
        {"event": "launch", "phase": "decode", "lengths": {0: (3, 4)}},
        {"event": "result", "tokens": {0: two}},
        {"event": "finish", "uid": 0, "reason": "length"},
        {"event": "launch", "phase": "decode", "lengths": {1: (0, 1)}},
        {"event": "result", "tokens": {1: other}},
        {"event": "finish", "uid": 1, "reason": "length"},
    ]
    times = [event["time"] for event in trace.events]
    assert times == sorted(times)


def test_a_trace_says_of_a_pass_that_failed_who_ended_with_it() -> None:
    server = Server()
    server.scheduler.trace = trace = Trace()
    for uid in range(2):
        server.add(apart(uid), 4)
    with failing(server, Failure()):
        server.step()
    launch, *_, first, second = trace.events[2:]
    assert (launch["event"], [*launch["lengths"]]) == ("launch", [0, 1])
    ends = [(event["event"], event["uid"], event["reason"]) for event in (first, second)]
    assert ends == [("finish", 0, "error"), ("finish", 1, "error")]


def test_the_spans_of_a_request_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    server = Server()
    trace = some_workload(server, 7)
    server.step(200, now=60.0)
    trace.write_chrome(tmp_path / "trace.json")
    rows = spans_by_row(tmp_path / "trace.json")
    passes = rows.pop(0)
    assert all(one[2] <= other[1] + 1e-6 for one, other in itertools.pairwise(passes))
    added = [event["uid"] for event in trace.events if event["event"] == "add"]
    assert sorted(rows) == [1 + uid for uid in added]
    for spans in rows.values():
        names = [name for name, _, _ in spans]
        assert names == ["waiting", "prefill", "decode"][: len(names)]
        for one, other in itertools.pairwise(spans):
            assert one[2] == pytest.approx(other[1], abs=1e-6)


def test_a_trace_may_begin_while_requests_run(tmp_path: Path) -> None:
    """What was before it is not known: a request begins with what is first seen of it."""
    server = Server(max_running_reqs=1)
    server.add(apart(0), 3)
    server.step()
    server.add(apart(1), 2)
    server.add(apart(2), 2)
    server.scheduler.trace = trace = Trace()
    server.scheduler.abort(2)
    server.step(4)
    trace.write_chrome(tmp_path / "trace.json")
    rows = spans_by_row(tmp_path / "trace.json")
    names = {row: [name for name, _, _ in spans] for row, spans in rows.items()}
    assert names == {
        0: ["decode", "decode", "prefill", "decode"],
        1: ["decode"],
        2: ["prefill", "decode"],
    }


def test_nothing_is_recorded_unless_it_is_asked_for() -> None:
    server = Server()
    server.drain(server.add(apart(0), 2))
    assert server.scheduler.trace is None


# --- LLM on a fake engine ---------------------------------------------------------------------


@pytest.fixture
def fake_llm(tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch) -> MakeLLM:
    """A function that makes the object, in the body of the test, on a fake engine."""

    def make(**options: Any) -> LLM:
        with monkeypatch.context() as patch:
            patch.setattr(minisgl.llm.llm, "Engine", FakeEngine)
            return LLM(tiny_model("llama"), **{"max_seq_len": 64} | options)

    return make


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes from one step of an `LLM` to the next."""
    ticks = itertools.count(100)
    monkeypatch.setattr(minisgl.llm.llm, "monotonic", lambda: float(next(ticks)))


def up_to(max_tokens: int, **params: Any) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, ignore_eos=True, **params)


def answer(llm: LLM, prompt: list[int], num_tokens: int) -> list[int]:
    return cast("FakeEngine", llm.engine).answer(prompt, num_tokens)


def text_of(llm: LLM, prompt: list[int], token_ids: list[int]) -> str:
    return Detokenizer(llm.tokenizer, prompt).push(token_ids, finished=True)


def num_passes(llm: LLM) -> int:
    return len(cast("FakeEngine", llm.engine).batches)


def tokens(pieces: Any) -> list[int]:
    return [token_id for piece in pieces for token_id in piece.token_ids]


def test_streams_are_computed_together(fake_llm: MakeLLM) -> None:
    llm = fake_llm()
    first, second = llm.stream([5, 6], up_to(6)), llm.stream([7], up_to(4))
    begun, begun_too = [next(first)], [next(second)]
    assert num_passes(llm) == 2  # each asked for one
    assert tokens([*begun, *first]) == answer(llm, [5, 6], 6)
    before = num_passes(llm)
    assert before <= 2 + 5
    # What the second has been given meanwhile is there for its reader.
    assert tokens([*begun_too, *second]) == answer(llm, [7], 4)
    assert num_passes(llm) == before


def test_a_batch_joins_a_stream(fake_llm: MakeLLM) -> None:
    llm = fake_llm()
    stream = llm.stream([5, 6], up_to(9))
    begun = [next(stream), next(stream)]
    outputs = llm.generate([[7], [8]], up_to(3))
    assert [output.token_ids for output in outputs] == [answer(llm, [n], 3) for n in (7, 8)]
    assert num_passes(llm) == 2 + 3
    assert tokens([*begun, *stream]) == answer(llm, [5, 6], 9)
    # Of the seven tokens that the stream lacked, the batch's passes have brought some.
    assert num_passes(llm) <= 2 + 3 + 5


def test_a_stream_gives_what_it_has_before_it_raises(fake_llm: MakeLLM) -> None:
    llm = fake_llm()
    stream = llm.stream([5], up_to(8))
    pieces = [next(stream)]
    for _ in range(3):  # as another thread's call does
        llm.scheduler.step()
    with failing_passes(llm, 1):
        llm.scheduler.step()
    with pytest.raises(RuntimeError, match="failed"):
        pieces += stream
    pieces += stream
    assert tokens(pieces) == answer(llm, [5], 8)[: len(tokens(pieces))]
    assert len(tokens(pieces)) == 4


@contextmanager
def failing_passes(llm: LLM, *numbers: int) -> Iterator[None]:
    """In a `with` block these passes fail, the first being number 1."""
    original, calls = llm.engine.forward_batch, itertools.count(1)

    def forward_batch(batch: Batch) -> Any:
        output = original(batch)
        if next(calls) in numbers:
            raise MemoryError("no room for the activations")
        return output

    with passes_by(llm.engine, forward_batch):
        yield


@pytest.mark.parametrize("failing_pass", [1, 2, 4])
def test_who_was_in_the_pass_that_failed_is_told_why_and_nobody_else(
    failing_pass: int, fake_llm: MakeLLM
) -> None:
    """In the first of these passes a prompt is computed: then the stream may have no part in it."""
    llm = fake_llm()
    stream = llm.stream([5], up_to(8))
    received = tokens([next(stream)])
    told = pytest.raises(RuntimeError, match=r"request 1 failed: .*no room")
    with failing_passes(llm, failing_pass), told as error:
        llm.generate([6], up_to(8))
    assert isinstance(error.value.__cause__, MemoryError)
    if 0 not in cast("FakeEngine", llm.engine).batches[-1]:
        assert received + tokens(stream) == answer(llm, [5], 8)
    else:
        with pytest.raises(RuntimeError, match=r"request 0 failed: .*no room"):
            tokens(stream)
    outputs = llm.generate([[6], [7]], up_to(8))
    assert [output.token_ids for output in outputs] == [answer(llm, [n], 8) for n in (6, 7)]


def test_a_batch_that_fails_in_part_leaves_nothing_running(fake_llm: MakeLLM) -> None:
    llm = fake_llm(max_running_reqs=1)
    with failing_passes(llm, 2), pytest.raises(RuntimeError, match="request 0 failed"):
        llm.generate([[5], [6], [7]], up_to(5))
    before = num_passes(llm)
    [output] = llm.generate([8], up_to(2))
    assert (output.token_ids, num_passes(llm)) == (answer(llm, [8], 2), before + 2)


@pytest.mark.parametrize("value", [0, 0.0, -1, NAN, INF, True, "1"])
@pytest.mark.parametrize("name", ["timeout", "queue_timeout"])
def test_a_limit_that_is_no_time_is_refused_at_the_call(
    name: str, value: Any, fake_llm: MakeLLM
) -> None:
    llm = fake_llm()
    for call in (llm.generate, llm.stream):
        with pytest.raises(ValueError) as refused:
            call([5, 6], up_to(2), **{name: value})
        assert str(refused.value) == f"{name} must be a finite number > 0, got {value!r}"
    assert num_passes(llm) == 0


@pytest.mark.parametrize(("timeout", "num_tokens"), [(1, 1), (3.5, 4), (1e-9, 1), (20, 9)])
def test_generate_gives_what_there_is_at_its_timeout(
    timeout: float, num_tokens: int, fake_llm: MakeLLM, seconds: None
) -> None:
    llm = fake_llm()
    outputs = llm.generate([[5, 6], [7]], up_to(9), timeout=timeout)
    for prompt, output in zip([[5, 6], [7]], outputs, strict=True):
        assert output.token_ids == answer(llm, prompt, 9)[:num_tokens]
        assert output.text == text_of(llm, prompt, output.token_ids)
        assert output.finish_reason == ("length" if num_tokens == 9 else "timeout")
    [again] = llm.generate([[5, 6]], up_to(3))
    assert again.token_ids == answer(llm, [5, 6], 3)


def test_generate_ends_who_has_not_begun_in_time(fake_llm: MakeLLM, seconds: None) -> None:
    llm = fake_llm(max_running_reqs=1)
    outputs = llm.generate([[5], [6], [7]], up_to(4), queue_timeout=6)
    assert [output.finish_reason for output in outputs] == ["length", "length", "timeout"]
    assert (outputs[2].token_ids, outputs[2].text) == ([], "")


def test_generate_says_who_was_aborted(fake_llm: MakeLLM) -> None:
    """By a stop button, say, in another thread; the first request of an `LLM` has number 0."""
    llm = fake_llm()
    original = llm.engine.forward_batch

    def forward_batch(batch: Batch) -> Any:
        if num_passes(llm) == 2:
            llm.scheduler.abort(0)
        return original(batch)

    with passes_by(llm.engine, forward_batch):
        outputs = llm.generate([[5], [6]], up_to(5))
    assert [output.finish_reason for output in outputs] == ["abort", "length"]
    assert [output.token_ids for output in outputs] == [answer(llm, [5], 3), answer(llm, [6], 5)]


def piece_by_piece(llm: LLM, prompt: list[int], pieces: list[Any], reason: str) -> list[int]:
    """The tokens of a stream, once it is sure that it has ended right and lost no text."""
    assert [piece.finish_reason for piece in pieces] == [None] * (len(pieces) - 1) + [reason]
    token_ids = tokens(pieces)
    assert "".join(piece.text for piece in pieces) == text_of(llm, prompt, token_ids)
    assert token_ids == answer(llm, prompt, 30)[: len(token_ids)]
    return token_ids


@pytest.mark.parametrize("timeout", [1, 2, 5, 9, 14, 22])
def test_a_stream_that_is_late_ends_with_a_reason_and_all_its_text(
    timeout: int, fake_llm: MakeLLM, seconds: None
) -> None:
    llm = fake_llm()
    pieces = [*llm.stream([5, 6], up_to(30), timeout=timeout)]
    assert len(piece_by_piece(llm, [5, 6], pieces, "timeout")) == timeout
    assert pieces[-1].token_ids == []


def test_a_stream_that_never_began_ends_with_an_empty_piece(
    fake_llm: MakeLLM, seconds: None
) -> None:
    llm = fake_llm(max_running_reqs=1)
    running = llm.stream([5], up_to(30))
    next(running)
    [piece] = llm.stream([6], up_to(3), queue_timeout=4)
    assert (piece.text, piece.token_ids, piece.finish_reason) == ("", [], "timeout")
    assert len(tokens(running)) == 29


@pytest.mark.parametrize("num_read", [1, 2, 7])
@pytest.mark.parametrize("num_unread", [0, 1, 6])
def test_a_stream_that_is_aborted_ends_with_a_reason_and_all_its_text(
    num_read: int, num_unread: int, fake_llm: MakeLLM
) -> None:
    """What others have brought it meanwhile is read first."""
    llm = fake_llm()
    stream = llm.stream([5, 6], up_to(30))
    pieces = [next(stream) for _ in range(num_read)]
    for _ in range(num_unread):
        llm.scheduler.step()
    llm.scheduler.abort(0)
    pieces += stream
    assert len(piece_by_piece(llm, [5, 6], pieces, "abort")) == num_read + num_unread
    llm.generate([5], up_to(1))
    llm.scheduler.check_invariants()


def test_a_stream_that_was_aborted_before_the_others_read_on_ends_with_its_last_token(
    fake_llm: MakeLLM,
) -> None:
    llm = fake_llm()
    stream = llm.stream([5, 6], up_to(30))
    pieces = [next(stream)]
    for _ in range(3):
        llm.scheduler.step()
    llm.scheduler.abort(0)
    llm.scheduler.step()
    pieces += stream
    assert len(piece_by_piece(llm, [5, 6], pieces, "abort")) == 4
    assert len(pieces[-1].token_ids) == 1


def test_a_stream_that_nobody_reads_any_more_is_computed_no_more(fake_llm: MakeLLM) -> None:
    llm = fake_llm(max_running_reqs=1)
    stream: Any = llm.stream([5], up_to(50))
    next(stream)
    stream.close()
    before = num_passes(llm)
    llm.generate([6], up_to(3))
    assert num_passes(llm) == before + 3


def test_later_changes_of_the_parameters_do_not_reach_a_request(fake_llm: MakeLLM) -> None:
    llm = fake_llm()
    expected = answer(llm, [5], 9)
    own = [expected[5]]
    params = SamplingParams(max_tokens=9, stop_token_ids=own)
    stream = llm.stream([5], params)
    pieces = [next(stream)]
    own[0] = expected[2]
    params.stop_token_ids = [expected[3]]
    end = expected.index(expected[5]) + 1
    assert tokens([*pieces, *stream]) == expected[:end]


def test_after_an_interrupt_at_any_line_no_caller_waits_for_ever(fake_llm: MakeLLM) -> None:
    """Neither the stream that was open beside it, nor a thread that comes later."""
    llm = fake_llm(max_running_reqs=2)
    expected = [answer(llm, prompt, 3) for prompt in ([5], [6], [7])]
    place: list[str] = ["not yet"]
    number, outcomes = -10, set()
    with ThreadPoolExecutor(1) as thread:
        while place:
            number += 13  # test_invariants.py has the other lines
            stream = llm.stream([8, 9], up_to(6))
            received = tokens([next(stream)])
            with suppress(KeyboardInterrupt), interrupt_at(number) as place:
                llm.generate([[5], [6], [7]], up_to(3))
            try:
                received += thread.submit(tokens, stream).result(timeout=20)
                assert received == answer(llm, [8, 9], 6), place
                outcomes.add("right")
            except RuntimeError as error:
                assert "ask again" in str(error), place
                outcomes.add("lost")
            outputs = thread.submit(llm.generate, [[5], [6], [7]], up_to(3)).result(timeout=20)
            assert [output.token_ids for output in outputs] == expected, place
            llm.scheduler.check_invariants()
    assert number > 400 and outcomes == {"right", "lost"}


# --- Real passes ------------------------------------------------------------------------------


def tiny_llm(folder: Path, **options: Any) -> LLM:
    return LLM(folder, **{"max_seq_len": 128, "page_size": 4, "max_running_reqs": 4} | options)


def test_a_stop_token_ends_a_request_wherever_it_comes(tiny_model: TinyModel) -> None:
    with tiny_llm(tiny_model("llama")) as llm:
        [whole] = llm.generate([[300, 5]], up_to(12))
        for place in (0, 3, 11):
            stop = whole.token_ids[place]
            end = whole.token_ids.index(stop) + 1
            for ignore_eos in (True, False):
                params = SamplingParams(
                    max_tokens=12, ignore_eos=ignore_eos, stop_token_ids=[stop, 10**6]
                )
                [output] = llm.generate([[300, 5]], params)
                assert (output.token_ids, output.finish_reason) == (whole.token_ids[:end], "stop")


@pytest.mark.parametrize("params", [{}, {"temperature": 8.0}, {"temperature": 8.0, "top_p": 0.9}])
def test_no_request_ends_before_it_has_its_least_tokens(
    params: dict[str, Any], tiny_model: TinyModel
) -> None:
    """Not by the model's own end, nor by what else was asked for; then by either."""
    with tiny_llm(tiny_model("llama")) as llm:
        stops = [*range(3, 384, 2)]  # half of all tokens
        sampled = [
            SamplingParams(max_tokens=20, min_tokens=6, stop_token_ids=stops, seed=seed, **params)
            for seed in range(12)
        ]
        for output in llm.generate([[5 + n, 9] for n in range(12)], sampled):
            ids = output.token_ids
            ends = {*stops, 2}
            assert len(ids) >= 6 and not ends & {*ids[:6]}
            assert not ends & {*ids[:-1]}
            assert (output.finish_reason == "stop") == (ids[-1] in ends)


def test_least_tokens_change_nothing_where_nothing_would_have_ended(tiny_model: TinyModel) -> None:
    with tiny_llm(tiny_model("llama")) as llm:
        [free] = llm.generate([[300, 5]], up_to(12))
        unused = next(n for n in range(3, 384) if n not in free.token_ids)
        params = [up_to(12, min_tokens=n, stop_token_ids=[unused]) for n in (1, 12)]
        for output in llm.generate([[300, 5]] * 2, params):
            assert (output.token_ids, output.finish_reason) == (free.token_ids, "length")


def test_a_row_of_nan_ends_its_request_and_not_its_neighbours(tiny_model: TinyModel) -> None:
    with tiny_llm(tiny_model("llama")) as llm:
        prompts = [[300, 5], [301, 6], [302, 7]]
        expected = [output.token_ids for output in llm.generate(prompts, up_to(6))]
        requests = [Request(50 + n, prompt, 6, up_to(6)) for n, prompt in enumerate(prompts)]
        for request in requests:
            llm.scheduler.add(request)
        llm.scheduler.step()
        forward = llm.engine.model.forward
        with pytest.MonkeyPatch.context() as patch:
            poison = torch.tensor([[0.0], [NAN], [0.0]])
            patch.setattr(llm.engine.model, "forward", lambda: forward() + poison)
            llm.scheduler.step()
        while not all(request.finish_reason for request in requests):
            llm.scheduler.step()
        assert [r.finish_reason for r in requests] == ["length", "error", "length"]
        counts = (6, 1, 6)
        assert [r.token_ids for r in requests] == [
            ids[:n] for ids, n in zip(expected, counts, strict=True)
        ]
        llm.scheduler.check_invariants()


@torch.inference_mode()
def assert_tokens_of(oracle: Any, request: Request) -> None:
    """One pass over our own text: while all tokens so far are the oracle's, so is the next."""
    ids = torch.tensor([[*request.input_ids, *request.token_ids[:-1]]])
    logits = oracle(ids, use_cache=False, logits_to_keep=len(request.token_ids)).logits[0]
    assert logits.argmax(-1).tolist() == request.token_ids


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_requests_that_come_at_any_step_get_the_tokens_of_transformers(
    page_size: int, tiny_model: TinyModel
) -> None:
    folder, chance = tiny_model("llama"), random.Random(page_size)
    oracle = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    options: dict[str, Any] = {
        "max_seq_len": 96,
        "page_size": page_size,
        "num_pages": -(-200 // page_size),
    }
    scheduler = Scheduler(Engine(EngineConfig(folder, max_running_reqs=4, **options)), frozenset())
    shared = chance.choices(range(3, 384), k=45)
    requests: list[Request] = []
    for _ in range(400):
        if len(requests) < 24 and chance.random() < 0.4:
            prompt = shared[: chance.choice([0, 20, 45])]
            prompt += chance.choices(range(3, 384), k=chance.randint(1, 20))
            requests.append(make_request(len(requests), prompt, chance.randint(1, 15)))
            scheduler.add(requests[-1])
        scheduler.step()
        if len(requests) == 24 and all(request.finish_reason for request in requests):
            break
    scheduler.check_invariants()
    for request in requests:
        assert request.finish_reason == "length"
        assert_tokens_of(oracle, request)
    assert sum(request.num_cached_tokens for request in requests) > 100


@pytest.mark.slow
def test_the_real_model_answers_those_who_come_and_go_as_it_answers_each_alone(
    real_model: Path,
) -> None:
    questions = ["What is the capital of France?", "请解释什么是 KV Cache？", "Name three colors."]
    prompts = [[{"role": "user", "content": text}] for text in questions]
    with LLM(real_model, max_seq_len=256, max_running_reqs=2) as llm:
        alone = [llm.generate([p], up_to(n))[0] for p, n in zip(prompts, (12, 20, 6), strict=True)]
        stream = llm.stream(prompts[1], up_to(20))
        pieces = [next(stream) for _ in range(3)]
        together = llm.generate([prompts[0], prompts[2]], [up_to(12), up_to(6)])
        pieces += stream
        assert tokens(pieces) == alone[1].token_ids
        assert "".join(piece.text for piece in pieces) == alone[1].text
        assert [output.token_ids for output in together] == [alone[n].token_ids for n in (0, 2)]
        llm.scheduler.check_invariants()
