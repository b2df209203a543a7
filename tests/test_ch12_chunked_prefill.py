"""Chapter 12: a step has a budget of tokens, so a long prompt stalls nobody.

In the order in which the files build on each other: the length that says what a chunk is, the
option, who is chosen and how far, whole steps on a fake engine, and at the end real passes.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from fake_engine import make_request
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
from minisgl.kvcache.manager import CacheManager
from minisgl.llm import LLM
from minisgl.scheduler.lifecycle import State
from minisgl.scheduler.prefill import MIN_SHARED_TOKENS
from minisgl.scheduler.request import Request
from minisgl.scheduler.scheduler import Scheduler
from minisgl.scheduler.table import TableManager
from minisgl.scheduler.trace import Trace

TinyModel = Callable[[str], Path]
Lengths = dict[int, tuple[int, int]]  # uid -> (cached_len, device_len)

NO_HANDLE: Any = None


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def pieces(start: int, end: int, size: int) -> list[tuple[int, int]]:
    """The tokens from `start` to `end`, cut into pieces of `size`."""
    return [(begin, min(begin + size, end)) for begin in range(start, end, size)]


# --- What a chunk is --------------------------------------------------------------------------


@pytest.mark.parametrize("cached_len", [0, 1, 4])
def test_a_round_that_ends_inside_the_prompt_is_a_chunk(cached_len: int) -> None:
    prompt = torch.arange(5, dtype=torch.int32)
    for device_len in range(cached_len + 1, 6):
        req = Req(prompt, 0, cached_len, 3, 0, SamplingParams(), NO_HANDLE)
        req.device_len = device_len
        assert req.is_chunk == (device_len < 5)
        assert req.extend_len == device_len - cached_len


def test_a_decode_is_no_chunk() -> None:
    req = Req(torch.arange(5, dtype=torch.int32), 0, 0, 3, 0, SamplingParams(), NO_HANDLE)
    for _ in range(3):
        assert not req.is_chunk
        req.complete_one()
        req.append_host(torch.tensor([7], dtype=torch.int32))
    assert not req.is_chunk and not req.can_decode


# --- The option -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, 2**31, 1.0, 2.5, math.nan, True, "8", None, [8]])
def test_a_budget_that_is_none_is_refused_with_its_rule_and_value(value: Any) -> None:
    with pytest.raises(ValueError) as refused:
        EngineConfig("no model", max_batch_tokens=value)
    rule = "must be an integer ≥ 1 and ≤ 2147483647"
    assert str(refused.value) == f"max_batch_tokens {rule}, got {value!r}"


@pytest.mark.guard
@pytest.mark.parametrize("value", [1, 7, 2**31 - 1])
def test_a_budget_at_its_edges_is_accepted(value: int) -> None:
    assert EngineConfig("no model", max_batch_tokens=value).max_batch_tokens == value


# --- Who is chosen, and how far ---------------------------------------------------------------


class Admission:
    """A prefill manager with its table and its cache, and passes that always succeed."""

    def __init__(self, num_pages: int = 99, page_size: int = 4, num_rows: int = 8) -> None:
        page_table = torch.zeros(num_rows, 200, dtype=torch.int32)
        self.table = TableManager(page_table)
        self.cache = CacheManager(num_pages, page_size, page_table)
        self.manager = prefill_manager(self.table, self.cache, page_size)
        self.uids = itertools.count()
        self.chosen: list[Request] = []

    def add(self, prompt: list[int], output_len: int = 1) -> Request:
        request = make_request(next(self.uids), prompt, output_len)
        self.manager.waiting[request.uid] = request
        return request

    def schedule(self, num_tokens: int) -> Lengths:
        self.chosen = self.manager.schedule(num_tokens)
        holding = [request.req for request in self.manager.running.values()]
        self.table.check_invariants(holding)
        self.cache.check_invariants(holding)
        return {one.uid: (one.req.cached_len, one.req.device_len) for one in self.chosen}

    def compute(self) -> None:
        """The pass of those who were chosen; who has its first token leaves."""
        for request in self.chosen:
            req = request.req
            yields = req.device_len == req.prompt_len
            req.complete_one()
            if yields:
                req.append_host(torch.tensor([9], dtype=torch.int32))
                self.cache.free(req)
                self.table.free(req.table_idx)
                del self.manager.running[request.uid]

    def run(self, num_tokens: int) -> list[Lengths]:
        """Steps until nobody is left."""
        steps = []
        while lengths := self.schedule(num_tokens):
            steps.append(lengths)
            self.compute()
        assert not self.manager.waiting and not self.manager.running
        return steps


WHOLE = [pytest.param(budget, marks=pytest.mark.guard) for budget in (12, 13, 50)]


@pytest.mark.parametrize("budget", [1, 2, 3, 7, 11, *WHOLE])
def test_a_prompt_is_computed_in_pieces_of_the_budget(budget: int) -> None:
    place = Admission()
    place.add(apart(0, 12))
    assert place.run(budget) == [{0: piece} for piece in pieces(0, 12, budget)]


def test_what_one_prompt_leaves_of_the_budget_goes_to_the_next() -> None:
    place = Admission()
    for uid in range(4):
        place.add(apart(uid))
    assert place.run(12) == [
        {0: (0, 5), 1: (0, 5), 2: (0, 2)},
        {2: (2, 5), 3: (0, 5)},
    ]


def test_a_budget_that_is_exactly_filled_begins_nobody_else() -> None:
    place = Admission()
    requests = [place.add(apart(uid)) for uid in range(3)]
    assert place.schedule(10) == {0: (0, 5), 1: (0, 5)}
    assert requests[2].state is State.WAITING
    assert (place.table.num_free_rows, [*place.manager.waiting]) == (8 - 2, [2])


def test_one_token_too_many_is_left_for_the_next_step() -> None:
    place = Admission()
    for uid in range(3):
        place.add(apart(uid))
    assert place.run(9) == [{0: (0, 5), 1: (0, 4)}, {1: (4, 5), 2: (0, 5)}]


def test_a_prompt_that_has_begun_goes_on_before_another_begins() -> None:
    """Else nobody would ever get a first token while short ones keep coming."""
    place = Admission()
    place.add(apart(0, 30))
    steps = []
    for uid in range(1, 5):
        place.add(apart(uid, 3))
        steps.append(place.schedule(8))
        place.compute()
    assert steps == [
        {0: (0, 8)},
        {0: (8, 16)},
        {0: (16, 24)},
        {0: (24, 30), 1: (0, 2)},
    ]


def test_whoever_has_begun_has_places_for_its_whole_answer() -> None:
    """So nobody can lack pages in the middle of a prompt."""
    place = Admission(num_pages=10)
    request = place.add(apart(0, 30), output_len=7)
    assert place.schedule(2) == {0: (0, 2)}
    assert len(request.req.cache_handle.pages) == 9  # 36 tokens have KV, the last has none
    assert (request.state, request.req.prompt_len) == (State.PREFILL, 30)
    row = place.table.token_pool[request.req.table_idx]
    assert row[:30].tolist() == request.input_ids


def test_nobody_overtakes_a_request_that_does_not_fit_though_there_are_tokens_left() -> None:
    place = Admission(num_pages=10)
    place.add(apart(0, 12), output_len=5)  # 4 pages of 10
    place.add(apart(1, 25), output_len=4)  # 7
    place.add(apart(2, 3))  # 1
    assert place.schedule(20) == {0: (0, 12)}
    place.compute()
    assert place.schedule(20) == {1: (0, 20)}
    place.compute()
    assert place.schedule(20) == {1: (20, 25), 2: (0, 3)}


def test_what_is_cached_costs_nothing_of_the_budget() -> None:
    place = Admission()
    place.add([*range(5, 35)])
    place.run(100)
    place.add([*range(5, 35)])
    place.add(apart(1))
    assert place.run(4) == [{1: (28, 30), 2: (0, 2)}, {2: (2, 5)}]


def test_a_budget_may_differ_from_step_to_step() -> None:
    """It is what those who decode leave."""
    place = Admission()
    request = place.add(apart(0, 20))
    seen = []
    for budget in (3, 1, 9, 2, 100):
        seen.append(place.schedule(budget)[0])
        place.compute()
    assert seen == [(0, 3), (3, 4), (4, 13), (13, 15), (15, 20)]
    assert len(request.req.input_ids) == 21


def test_a_pass_that_was_not_computed_is_chosen_again() -> None:
    place = Admission()
    place.add(apart(0, 20))
    assert place.schedule(6) == place.schedule(6) == {0: (0, 6)}
    assert place.schedule(20) == {0: (0, 20)}
    assert place.schedule(19) == {0: (0, 19)}


@pytest.mark.parametrize("seed", range(5))
def test_the_budget_is_used_up_and_only_the_last_who_was_chosen_is_cut(seed: int) -> None:
    chance, place = random.Random(seed), Admission(num_pages=400, num_rows=400)
    for uid in range(60):
        place.add(apart(uid, chance.randint(1, 30)))
    while place.manager.waiting or place.manager.running:
        budget = chance.randint(1, 40)
        lengths = place.schedule(budget)
        computed = sum(end - begin for begin, end in lengths.values())
        assert computed == budget or (computed < budget and not place.manager.waiting)
        cut = [request.uid for request in place.chosen if request.req.is_chunk]
        assert cut in ([], [[*lengths][-1]])
        assert [*lengths] == sorted(lengths)  # the order of arrival
        place.compute()
        assert len(place.manager.running) <= 1


SHARED = [*range(5, 5 + MIN_SHARED_TOKENS + 8)]  # 40 tokens


def test_who_begins_like_a_long_prompt_waits_until_all_of_it_is_computed() -> None:
    place = Admission()
    place.add([*SHARED, 60])
    second = place.add([*SHARED, 61])
    assert place.run(15) == [
        {0: (0, 15)},
        {0: (15, 30)},
        {0: (30, 41)},  # four tokens are left, and it does not take them
        {1: (40, 41)},
    ]
    assert second.num_cached_tokens == 40


def test_who_comes_in_the_middle_of_such_a_prompt_waits_too() -> None:
    place = Admission()
    place.add([*SHARED, 60])
    place.schedule(25)
    place.compute()
    place.add([*SHARED, 61])
    place.add(apart(2))
    assert place.run(25) == [{0: (25, 41), 2: (0, 5)}, {1: (40, 41)}]


def test_who_begins_alike_by_less_does_not_wait() -> None:
    place = Admission(page_size=1)
    begin = SHARED[: MIN_SHARED_TOKENS - 1]
    place.add([*begin, 60])
    place.add([*begin, 61])
    assert place.run(20) == [{0: (0, 20)}, {0: (20, 32), 1: (0, 8)}, {1: (8, 28)}, {1: (28, 32)}]


# --- Steps ------------------------------------------------------------------------------------


def chunked(budget: int, **options: Any) -> Server:
    """Engines with room for long prompts."""
    options = {"max_seq_len": 160, "num_pages": 160, "max_running_reqs": 8} | options
    return Server(max_batch_tokens=budget, **options)


def pieces_of(server: Server, request: Request) -> list[tuple[int, int]]:
    """What each pass has computed of a request."""
    found = [batch.get(request.uid) for batch in server.engine.batches]
    return [piece for piece in found if piece is not None]


def computed(server: Server) -> list[int]:
    """How many tokens each pass has computed."""
    batches = server.engine.batches
    return [sum(end - begin for begin, end in batch.values()) for batch in batches]


LENGTH = 23
SIZES = [1, 2, 3, 7, LENGTH - 1, LENGTH, LENGTH + 1]


@pytest.mark.parametrize("budget", SIZES)
@pytest.mark.parametrize("page_size", [1, 3, 4, 16])
def test_pieces_of_any_size_give_the_same_tokens_cold_and_warm(page_size: int, budget: int) -> None:
    server = chunked(budget, page_size=page_size)
    for turn in range(3):
        request = server.add(apart(0, LENGTH), 4)
        server.drain(request)
        cached = (LENGTH - 1) // page_size * page_size if turn else 0
        assert request.num_cached_tokens == cached
        decodes = pieces(LENGTH, LENGTH + 3, 1)
        assert pieces_of(server, request) == pieces(cached, LENGTH, budget) + decodes
    assert server.is_empty()


def test_who_decodes_comes_first_and_prompts_get_the_rest() -> None:
    server = chunked(10)
    running = [server.add(apart(uid, 3), 9) for uid in range(3)]
    server.step()
    long = server.add(apart(3, 30), 2)
    server.step(5)
    assert server.passes()[1:] == [[0, 1, 2, 3]] * 5
    assert pieces_of(server, long) == [(0, 7), (7, 14), (14, 21), (21, 28), (28, 30)]
    assert [len(request.token_ids) for request in [*running, long]] == [6, 6, 6, 1]
    server.drain(*running, long)


def test_nobody_who_decodes_is_left_out_and_no_step_is_long() -> None:
    """Without a budget the prompt's step is ten times as long as the others."""
    most = {}
    for budget in (1000, 12):
        server = chunked(budget)
        running = [server.add(apart(uid), 40) for uid in range(4)]
        server.step(3)
        long = server.add(apart(4, 120), 3)
        while not long.finish_reason:
            before = [len(request.token_ids) for request in running]
            server.step()
            assert [len(request.token_ids) for request in running] == [n + 1 for n in before]
        most[budget] = max(computed(server))
        server.drain(*running, long)
    assert most == {1000: 4 + 120, 12: 12}


@pytest.mark.parametrize("budget", [8, 16, 32])
def test_prompts_that_come_one_per_step_leave_every_gap_within_the_bound(budget: int) -> None:
    server = chunked(budget, num_pages=800, max_running_reqs=64)
    running, others = server.add(apart(0), 150), list[Request]()
    server.step()
    for uid in range(1, 61):
        others.append(server.add(apart(uid, 20), 3))
        decoding = [one for one in [running, *others] if one.state is State.DECODE]
        before = [len(request.token_ids) for request in decoding]
        server.step()
        assert running in decoding
        assert [len(request.token_ids) for request in decoding] == [n + 1 for n in before]
        assert computed(server)[-1] <= budget
    begun = [request for request in others if request.token_ids]
    assert begun == others[: len(begun)]  # first come, first served
    assert (len(begun) >= 58) == (budget == 32)  # the smaller budgets cannot keep up
    server.drain(running, *others)
    assert server.is_empty()


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_a_prompt_gets_on_however_many_decode(budget: int) -> None:
    """By a token per step at least: a budget below their number would let it wait for ever."""
    server = chunked(budget)
    running = [server.add(apart(uid, 2), 60) for uid in range(3)]
    server.step(9)
    late = server.add(apart(3, 12), 2)
    server.step(12)
    assert len(late.token_ids) == 1
    assert pieces_of(server, late) == pieces(0, 12, 1)
    assert computed(server)[-1] == 3 + 1
    server.drain(*running, late)


@pytest.mark.parametrize("seed", range(20))
def test_the_laws_of_a_step_hold_for_any_requests(seed: int) -> None:
    """All who decode are in it, one prompt at most is cut, and the tokens are within the bound."""
    chance = random.Random(seed)
    budget = chance.choice([1, 2, 5, 12, 30])
    server = chunked(budget, letters=3, page_size=chance.choice([1, 4]), num_pages=120)
    requests: list[Request] = []
    for number in range(80):
        for _ in range(chance.choice([0, 0, 1, 2]) if number < 40 else 0):
            prompt = [5 + chance.randrange(2) for _ in range(chance.randint(1, 40))]
            requests.append(server.add(prompt, chance.randint(1, 9)))
        decoding = [*server.scheduler._decode.running]
        server.engine.batches.append({})
        server.step()
        assert server.passes()[-1][: len(decoding)] == decoding
        assert computed(server)[-1] <= max(budget, len(decoding) + 1)
        inside = [one for one in requests if one.state is State.PREFILL]
        assert len(inside) <= 1 and not any(one.token_ids for one in inside)
    server.drain(*requests)
    assert server.is_empty()


@contextmanager
def watched(server: Server) -> Iterator[list[Batch]]:
    """In a `with` block, the batches that the engine is given."""
    seen: list[Batch] = []
    original = server.engine.forward_batch

    def forward_batch(batch: Batch) -> Any:
        seen.append(batch)
        return original(batch)

    with passes_by(server.engine, forward_batch):
        yield seen


def test_a_pass_of_a_chunk_alone_yields_no_token() -> None:
    server = chunked(4)
    request = server.add(apart(0, 9), 2, temperature=1.0, logprobs=2, min_tokens=1)
    with watched(server) as batches:
        server.step(2)
    assert (request.state, request.token_ids, request.logprobs) == (State.PREFILL, [], [])
    for batch in batches:
        assert (batch.phase, batch.logits_rows.tolist()) == ("prefill", [])
        args = batch.sampling_args
        assert (args.num_logprobs, args.penalties, args.banned) == ([], [], [])
    server.step()
    assert (request.state, len(request.token_ids)) == (State.DECODE, 1)


def test_a_pass_is_a_decode_only_where_everybody_brings_a_token_and_gets_one() -> None:
    server = chunked(3)
    running = server.add([50], 9)
    with watched(server) as batches:
        server.step(2)
        server.add(apart(1, 6), 3)  # two tokens, two, two; then it decodes
        server.step(4)
        server.add([51, 52], 1)  # beside two who decode: one token that is a chunk, then the last
        server.step(2)
    phases = ["decode", "decode", *["prefill"] * 3, "decode", "prefill", "decode"]
    assert [batch.phase for batch in batches] == phases
    rows = [[0], [0], [0], [0], [0, 2], [0, 1], [0, 1], [0, 1]]
    assert [batch.logits_rows.tolist() for batch in batches] == rows
    assert len(running.token_ids) == 8


def test_the_sampler_is_told_of_those_who_get_a_token_in_their_order() -> None:
    """A chunk has no row there, so the rows behind it move up."""
    server = chunked(16, eos_ids=[2])
    first = server.add(apart(0), 9, repetition_penalty=1.5)
    server.step()
    second = server.add(apart(1), 9, logprobs=3, min_tokens=4)
    long = server.add(apart(2, 40), 9, presence_penalty=1.0, min_tokens=4, logprobs=1)
    with watched(server) as batches:
        server.step(5)
    assert [len(request.token_ids) for request in (first, second, long)] == [6, 5, 2]
    counts = [batch.sampling_args.num_logprobs for batch in batches]
    assert counts == [[None, 3]] * 3 + [[None, 3, 1]] * 2
    rows = [[penalty.row for penalty in batch.sampling_args.penalties] for batch in batches]
    assert rows == [[0]] * 3 + [[0, 2]] * 2
    banned = [[row for row, _ in batch.sampling_args.banned] for batch in batches]
    assert banned == [[1], [1], [1], [1, 2], [2]]


def test_the_tokens_before_are_known_to_the_penalties_once_the_last_piece_is_computed() -> None:
    server = chunked(4)
    server.add(apart(0, 11), 3, frequency_penalty=0.5)
    with watched(server) as batches:
        server.step(4)
    known = [
        (penalty.prompt_ids.tolist(), len(penalty.generated_ids))
        for batch in batches
        for penalty in batch.sampling_args.penalties
    ]
    assert known == [(apart(0, 11), 0), (apart(0, 11), 1)]


def test_a_draw_is_the_same_in_pieces() -> None:
    """The random number belongs to the token, and not to the pass."""
    seen = {}
    for budget in (1000, 5, 1):
        server = chunked(budget)
        one = server.add(apart(0, 12), 3, temperature=1.0, seed=5)
        other = server.add(apart(1, 7), 3, temperature=1.0)
        drawn: dict[int, list[float]] = {0: [], 1: []}
        with watched(server) as batches:
            server.drain(one, other)
        for batch, lengths in zip(batches, server.engine.batches, strict=True):
            filters = batch.sampling_args.filters
            uids = [uid for uid, (_, end) in lengths.items() if end >= (12, 7)[uid]]
            uniforms = filters.uniform[:, 0].tolist() if filters else []
            for uid, uniform in zip(uids, uniforms, strict=True):
                drawn[uid].append(uniform)
        seen[budget] = drawn
        assert len(pieces_of(server, one)) == -(-12 // budget) + 2
    assert seen[1000] == seen[5] == seen[1]
    assert [len(uniforms) for uniforms in seen[1].values()] == [3, 3]


# --- The cache --------------------------------------------------------------------------------


def test_a_prompt_is_in_the_cache_once_all_of_it_is_computed_and_not_before() -> None:
    server = chunked(10, page_size=2)
    request = server.add(apart(0, 24), 9)
    known = []
    for _ in range(3):
        server.step()
        known.append(server.scheduler._cache.num_cached_tokens(request.input_ids))
    assert known == [0, 0, 24]


def test_who_shares_a_long_prompt_computes_only_its_own_end() -> None:
    server = chunked(16)
    requests = [server.add([*SHARED, 60 + n, 61], 3) for n in range(4)]
    server.drain(*requests)
    assert pieces_of(server, requests[0])[:3] == [(0, 16), (16, 32), (32, 42)]
    assert all(request.num_cached_tokens == 40 for request in requests[1:])
    assert [pieces_of(server, request)[0] for request in requests[1:]] == [(40, 42)] * 3


def test_a_long_prompt_that_overtakes_who_stands_back_delays_it_by_no_more_than_itself() -> None:
    """It has begun meanwhile, and goes on first."""
    server = chunked(16)
    first, stands_back = server.add([*SHARED, 60], 2), server.add([*SHARED, 61], 2)
    long = server.add(apart(2, 60), 2)
    server.drain(first, stands_back, long)
    order = [uid for batch in server.engine.batches for uid in batch]
    assert [*dict.fromkeys(order)] == [0, 2, 1]
    assert stands_back.num_cached_tokens == 40
    begun = next(n for n, batch in enumerate(server.engine.batches) if 1 in batch)
    whole = next(
        n for n, batch in enumerate(server.engine.batches) if batch.get(2, (0, 0))[1] == 60
    )
    assert begun == whole


# --- Ended in the middle of a prompt ----------------------------------------------------------


def in_the_middle(server: Server, limits: Any = None) -> Request:
    """A request of 30 tokens of which two passes have computed the first 20, beside another."""
    server.add(apart(1, 3), 9)
    server.step()
    request = server.add(apart(0, 30), 5, limits)
    server.step(2)
    assert (request.state, request.req.cached_len) == (State.PREFILL, 20)
    return request


def assert_all_are_right(server: Server, *requests: Request) -> None:
    """The others get their answers, and nothing is held afterwards."""
    server.drain(*requests)
    assert server.is_empty()


@pytest.mark.parametrize("reason", ["abort", "timeout"])
def test_whoever_is_ended_in_the_middle_leaves_what_was_computed_to_others(reason: str) -> None:
    server = chunked(11)
    request = in_the_middle(server, {"timeout": 5.0} if reason == "timeout" else None)
    free = server.scheduler._cache._allocator.num_free + len(request.req.cache_handle.pages)
    server.scheduler.abort(request.uid if reason == "abort" else -1)
    server.step(now=5.0)
    assert (request.finish_reason, request.state) == (reason, State.ABORTED)
    assert (request.token_ids, request.error) == ([], None)
    # Of what it held, the pages of 20 tokens are the tree's now.
    assert server.scheduler._cache._allocator.num_free == free - 5
    again = server.add(request.input_ids, 5)
    server.drain(again)
    assert again.num_cached_tokens == 20
    assert_all_are_right(server)


def test_a_queue_timeout_does_not_end_whoever_has_begun() -> None:
    server = chunked(11)
    request = in_the_middle(server, {"queue_timeout": 2.0})
    server.step(now=1e6)
    assert request.finish_reason is None and len(request.token_ids) == 1
    server.drain(request)


def test_the_row_and_the_pages_of_whoever_is_ended_are_free_in_the_same_step() -> None:
    server = chunked(10, max_running_reqs=1, num_pages=10, max_seq_len=41)
    request, waits = server.add(apart(0, 30), 9), server.add(apart(1, 30), 9)
    server.step(2)
    server.scheduler.abort(request.uid)
    server.step()
    assert waits.req.cached_len == 10
    assert_all_are_right(server, waits)


def test_an_abort_in_the_pass_of_a_chunk_counts_from_the_next_step() -> None:
    server = chunked(11)
    original = server.engine.forward_batch

    def aborting(batch: Batch) -> Any:
        server.scheduler.abort(request.uid)
        return original(batch)

    request = in_the_middle(server)
    with passes_by(server.engine, aborting):
        server.step()
    assert len(request.token_ids) == 1
    server.step()
    assert (request.finish_reason, len(request.token_ids)) == ("abort", 1)


@pytest.mark.parametrize("ended", ["abort", "timeout", "failure", "interrupt"])
def test_nobody_waits_for_ever_for_a_prompt_that_is_never_whole(ended: str) -> None:
    server = chunked(16)
    limits = {"timeout": 5.0} if ended == "timeout" else None
    first, waits = server.add([*SHARED, 60], 3, limits), server.add([*SHARED, 61], 3)
    server.step()
    assert not waits.num_cached_tokens and len(server.engine.batches[0]) == 1
    error = {"failure": Failure(), "interrupt": KeyboardInterrupt()}.get(ended)
    if error is None:
        server.scheduler.abort(first.uid if ended == "abort" else -1)
        server.step(now=5.0)
    else:
        with failing(server, error), suppress(KeyboardInterrupt):
            server.step()
        server.step()
    assert first.finish_reason == (ended if error is None else "error")
    assert waits.state is State.PREFILL
    # Of sixteen tokens that were computed right, whole pages stay; what failed leaves nothing.
    assert waits.num_cached_tokens == (16 if error is None else 0)
    server.drain(waits)
    assert server.is_empty()


# --- Failures ---------------------------------------------------------------------------------


def test_a_pass_that_fails_ends_those_who_decode_in_it_too() -> None:
    """Each is told what failed; who waits is spared, and so is what was computed before."""
    server = chunked(8, max_running_reqs=2)
    running = server.add(apart(0), 6)
    server.step(2)
    long, waits = server.add(apart(1, 30), 6), server.add(apart(2), 6)
    server.step()
    error = Failure()
    with failing(server, error):
        server.step()
    for request in (running, long):
        assert (request.finish_reason, request.state) == ("error", State.ABORTED)
        assert request.error is error
    assert running.token_ids == server.answer(running)[:3]
    assert (long.token_ids, waits.state) == ([], State.WAITING)
    again = server.add([*running.input_ids, *running.token_ids], 2)
    long_again = server.add(apart(1, 30), 6)
    server.drain(waits, again, long_again)
    assert (again.num_cached_tokens, long_again.num_cached_tokens) == (4, 0)
    assert server.is_empty()


def test_a_row_without_scores_ends_alone_and_a_chunk_beside_it_goes_on() -> None:
    server = chunked(9)
    lost, other = server.add(apart(0, 3), 9), server.add(apart(1, 3), 9)
    server.step()
    long = server.add(apart(2, 30), 3)
    server.step()
    with without_scores(server, lost.uid, long.uid):
        server.step()
    assert [lost.finish_reason, other.finish_reason, long.finish_reason] == ["error", None, None]
    assert lost.token_ids == server.answer(lost)[:2]
    assert_all_are_right(server, other, long)


def test_the_kv_of_a_long_prompt_whose_first_row_has_no_scores_is_not_kept() -> None:
    server = chunked(9)
    lost = server.add(apart(0, 30), 3)
    with without_scores(server, lost.uid):
        server.step(4)
    assert (lost.finish_reason, lost.token_ids) == ("error", [])
    again = server.add(apart(0, 30), 3)
    server.drain(again)
    assert again.num_cached_tokens == 0
    assert server.is_empty()


def test_after_ctrl_c_in_the_middle_nothing_that_was_written_is_read() -> None:
    server = chunked(11)
    request = in_the_middle(server)
    with failing(server, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        server.step()
    again = server.add(request.input_ids, 3)
    server.drain(again)
    assert request.finish_reason == "error" and "ask again" in str(request.error)
    assert again.num_cached_tokens == 0
    assert server.is_empty()


def test_an_interrupt_at_any_line_of_such_steps_leaves_everything_usable() -> None:
    place: list[str] = ["not yet"]
    number, outcomes = 0, set()
    server = chunked(9, page_size=2)
    while place:
        number += 1
        running = server.add(apart(0, 3), 4)
        server.step()
        long, unwanted = server.add(apart(1, 14), 1), server.add(apart(2, 9), 2)
        waits = server.add(apart(3), 1)
        with suppress(KeyboardInterrupt), interrupt_at(number) as place:
            server.scheduler.step()
            server.scheduler.step()
            server.scheduler.abort(unwanted.uid)
            server.scheduler.step()
        everybody = [running, long, unwanted, waits]
        server.step(4)
        for request in everybody:
            answer, reason = server.answer(request), request.finish_reason
            assert reason in ("length", "abort", "error"), (place, request)
            assert request.token_ids == answer[: len(request.token_ids)], place
            assert reason != "length" or request.token_ids == answer, place
            outcomes.add((everybody.index(request), reason))
        server.drain(server.add(apart(1, 14)))
    assert number > 300
    assert {(0, "error"), (1, "error"), (1, "length"), (2, "abort"), (2, "error")} <= outcomes
    assert {(3, "error"), (3, "length")} <= outcomes


# --- What is recorded -------------------------------------------------------------------------


def untimed(trace: Trace) -> list[dict[str, Any]]:
    return [{key: value for key, value in e.items() if key != "time"} for e in trace.events]


def test_a_trace_shows_the_pieces_and_who_got_a_token() -> None:
    server = chunked(4)
    server.scheduler.trace = trace = Trace()
    server.add([50], 3)
    server.step()
    server.add(apart(1, 7), 1)
    server.step(2)
    one, two, three = server.engine.answer([50], 3)
    [other] = server.engine.answer(apart(1, 7), 1)
    both = {0: (2, 3), 1: (3, 6)}
    assert untimed(trace)[3:] == [
        {"event": "add", "uid": 1, "num_tokens": 7},
        {"event": "launch", "phase": "prefill", "lengths": {0: (1, 2), 1: (0, 3)}},
        {"event": "result", "tokens": {0: two}},
        {"event": "launch", "phase": "prefill", "lengths": both},
        {"event": "result", "tokens": {0: three}},
        {"event": "finish", "uid": 0, "reason": "length"},
    ]
    server.step()
    assert untimed(trace)[-2]["tokens"] == {1: other}
    assert untimed(trace)[2]["tokens"] == {0: one}


def test_the_prefill_of_a_timeline_lasts_from_the_first_piece_to_the_token(tmp_path: Path) -> None:
    server = chunked(4)
    server.scheduler.trace = trace = Trace()
    server.drain(server.add(apart(0, 10), 3))
    trace.write_chrome(tmp_path / "trace.json")
    spans = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    mine = [span for span in spans if span["tid"] == 1]
    assert [span["name"] for span in mine] == ["waiting", "prefill", "decode"]
    times = [1e6 * event["time"] for event in trace.events if event["event"] == "launch"]
    got = 1e6 * next(e["time"] for e in trace.events if e["event"] == "result" and e["tokens"])
    assert mine[1]["ts"] == pytest.approx(times[0])
    assert mine[1]["ts"] + mine[1]["dur"] == pytest.approx(got)
    assert [span["name"] for span in spans if span["tid"] == 0] == ["prefill"] * 3 + ["decode"] * 2


def test_equal_inputs_give_equal_traces() -> None:
    def run() -> list[dict[str, Any]]:
        chance, server = random.Random(3), chunked(12, letters=3)
        server.scheduler.trace = trace = Trace()
        for now in range(80):
            for _ in range(chance.choice([0, 0, 1, 2])):
                prompt = [5 + chance.randrange(2) for _ in range(chance.randint(1, 60))]
                server.add(prompt, chance.randint(1, 9), {"timeout": chance.choice([None, 20.0])})
            if chance.random() < 0.2:
                server.scheduler.abort(chance.randrange(20))
            server.step(now=float(now))
        assert max(computed(server)) == 12
        return untimed(trace)

    assert run() == run()


# --- Real passes ------------------------------------------------------------------------------


def up_to(max_tokens: int, **params: Any) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, ignore_eos=True, **params)


def tiny_llm(folder: Path, budget: int, **options: Any) -> LLM:
    options = {"max_seq_len": 128, "page_size": 4, "max_running_reqs": 4} | options
    return LLM(folder, max_batch_tokens=budget, **options)


def watch_sizes(llm: LLM) -> list[int]:
    """The number of tokens of each pass from now on."""
    sizes: list[int] = []
    original = llm.engine.forward_batch

    def forward_batch(batch: Batch) -> Any:
        sizes.append(len(batch.input_ids))
        return original(batch)

    llm.engine.forward_batch = forward_batch  # type: ignore[method-assign]
    return sizes


@torch.inference_mode()
def assert_tokens_of(oracle: Any, request: Request) -> None:
    """One pass over our own text: while all tokens so far are the oracle's, so is the next."""
    ids = torch.tensor([[*request.input_ids, *request.token_ids[:-1]]])
    logits = oracle(ids, use_cache=False, logits_to_keep=len(request.token_ids)).logits[0]
    assert logits.argmax(-1).tolist() == request.token_ids


@pytest.mark.parametrize("budget", SIZES)
@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_the_tokens_of_a_prompt_in_pieces_are_those_of_transformers(
    page_size: int, budget: int, tiny_model: TinyModel
) -> None:
    folder = tiny_model("llama")
    oracle = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    prompt = random.Random(1).choices(range(3, 384), k=LENGTH)
    with tiny_llm(folder, budget, page_size=page_size) as llm:
        sizes = watch_sizes(llm)
        for turn in range(2):  # cold, then warm
            request = make_request(turn, prompt, 8)
            llm.scheduler.add(request)
            while not request.finish_reason:
                llm.scheduler.step()
            assert_tokens_of(oracle, request)
            assert request.num_cached_tokens == turn * ((LENGTH - 1) // page_size * page_size)
    assert sizes[: -(-LENGTH // budget)] == [
        end - begin for begin, end in pieces(0, LENGTH, budget)
    ]


@pytest.mark.parametrize("budget", [1, 5, 17, 40])
def test_requests_that_come_at_any_step_get_the_tokens_of_transformers(
    budget: int, tiny_model: TinyModel
) -> None:
    folder, chance = tiny_model("qwen3"), random.Random(budget)
    oracle = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    options: dict[str, Any] = {"max_seq_len": 96, "page_size": 4, "num_pages": 50}
    config = EngineConfig(folder, max_running_reqs=4, max_batch_tokens=budget, **options)
    scheduler = Scheduler(Engine(config), frozenset())
    scheduler.trace = trace = Trace()
    shared = chance.choices(range(3, 384), k=45)
    requests: list[Request] = []
    for _ in range(1500):
        if len(requests) < 16 and chance.random() < 0.3:
            prompt = shared[: chance.choice([0, 20, 45])]
            prompt += chance.choices(range(3, 384), k=chance.randint(1, 20))
            requests.append(make_request(len(requests), prompt, chance.randint(1, 15)))
            scheduler.add(requests[-1])
        scheduler.step()
        if len(requests) == 16 and all(request.finish_reason for request in requests):
            break
    scheduler.check_invariants()
    for request in requests:
        assert request.finish_reason == "length"
        assert_tokens_of(oracle, request)
    launches = [event["lengths"].values() for event in trace.events if event["event"] == "launch"]
    most = max(sum(end - begin for begin, end in lengths) for lengths in launches)
    assert budget <= most <= max(budget, 4)


PARAMS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "drawn": {"temperature": 1.5, "seed": 7},
    "top-p": {"temperature": 2.0, "top_p": 0.8, "seed": 8},
    "penalties": {"repetition_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.5},
    "min_tokens": {"min_tokens": 6, "stop_token_ids": [*range(3, 384, 2)]},
    "logprobs": {"logprobs": 4},
}


@pytest.mark.parametrize("budget", [3, 16])
@pytest.mark.parametrize("name", PARAMS)
def test_what_a_request_asks_of_the_sampler_holds_beside_a_chunk(
    name: str, budget: int, tiny_model: TinyModel
) -> None:
    """Its tokens are those that it gets alone and whole, and so are those of its neighbours."""
    chance = random.Random(4)
    prompts = [chance.choices(range(3, 384), k=length) for length in (9, 2, 50, 30)]
    params = [up_to(8), up_to(20, **PARAMS[name]), up_to(8), up_to(9, **PARAMS[name])]
    pairs = list(zip(prompts, params, strict=True))
    with tiny_llm(tiny_model("llama"), 10**6) as llm:
        alone = [llm.generate([prompt], one)[0] for prompt, one in pairs]
    with tiny_llm(tiny_model("llama"), budget) as llm:
        sizes = watch_sizes(llm)
        together = llm.generate(prompts, params)
    assert budget <= max(sizes) <= max(budget, 4)
    for one, other in zip(alone, together, strict=True):
        assert (one.token_ids, one.finish_reason) == (other.token_ids, other.finish_reason)
        for left, right in zip(one.logprobs or [], other.logprobs or [], strict=True):
            assert left.logprob == pytest.approx(right.logprob, abs=1e-4)
            assert [token for token, _ in left.top] == [token for token, _ in right.top]


def test_a_row_of_nan_in_a_mixed_pass_ends_its_request_alone(tiny_model: TinyModel) -> None:
    with tiny_llm(tiny_model("llama"), 8) as llm:
        prompts = [[300, 5], [301, 6], [*range(302, 332)]]
        expected = [output.token_ids for output in llm.generate(prompts, up_to(9))]
        # Other beginnings: nothing of them is cached.
        others = [[40 + n, *prompt] for n, prompt in enumerate(prompts)]
        requests = [Request(50 + n, prompt, 9, up_to(9)) for n, prompt in enumerate(others)]
        for request in requests:
            llm.scheduler.add(request)
        llm.scheduler.step()
        forward = llm.engine.model.forward
        with pytest.MonkeyPatch.context() as patch:
            poison = torch.tensor([[0.0], [math.nan]])
            patch.setattr(llm.engine.model, "forward", lambda: forward() + poison)
            llm.scheduler.step()
        while not all(request.finish_reason for request in requests):
            llm.scheduler.step()
        assert [request.finish_reason for request in requests] == ["length", "error", "length"]
        llm.scheduler.check_invariants()
        again = llm.generate(prompts, up_to(9))
        assert [output.token_ids for output in again] == expected


def test_a_stream_goes_on_while_a_long_prompt_is_computed(tiny_model: TinyModel) -> None:
    with tiny_llm(tiny_model("llama"), 8) as llm:
        expected = [*llm.generate([[300, 5]], up_to(20))[0].token_ids]
        sizes = watch_sizes(llm)
        stream = llm.stream([300, 5], up_to(20))
        received = next(stream).token_ids
        long = llm.stream([*range(100, 160)], up_to(2))
        next(long)
        num_passes = len(sizes)
        for _ in range(num_passes - 1):  # those that computed the prompt have brought a token each
            received = received + next(stream).token_ids
        assert len(sizes) == num_passes == 1 + -(-60 // 7)
        received += [token for piece in stream for token in piece.token_ids]
        assert received == expected


@pytest.mark.slow
def test_the_real_model_answers_the_same_in_pieces(real_model: Path) -> None:
    text = "The engine reads a prompt, computes keys and values, and stores them in pages. " * 5
    prompts = [
        [{"role": "user", "content": text + end}] for end in ("Why?", "请解释什么是 KV Cache？")
    ]
    answers = []
    for budget in (10**6, 64, 37, 5):
        with LLM(real_model, max_seq_len=256, max_batch_tokens=budget) as llm:
            sizes = watch_sizes(llm)
            outputs = llm.generate(prompts, up_to(12))
            answers.append([output.token_ids for output in outputs])
            assert max(sizes) <= budget
    assert answers == [answers[0]] * 4
