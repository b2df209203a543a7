"""Chapter 13: a request holds what it is expected to need, and the youngest gives way.

In the order in which the files build on each other: the guess, the order of those who wait, pages
as a request grows, who is let in, whole steps on a fake engine, and at the end real passes.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from fake_engine import make_request
from fake_server import Failure, Server, apart, failing, passes_by, without_scores
from interrupts import interrupt_at
from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.config import EngineConfig
from minisgl.engine.engine import Engine
from minisgl.kvcache.manager import CacheManager
from minisgl.llm import LLM
from minisgl.scheduler.estimate import LengthEstimate
from minisgl.scheduler.lifecycle import State, check_transition
from minisgl.scheduler.policy import (
    MAX_OVERTAKEN,
    POLICIES,
    FirstComeFirstServed,
    LongestPrefixMatch,
    Policy,
)
from minisgl.scheduler.prefill import PrefillManager
from minisgl.scheduler.request import Request
from minisgl.scheduler.scheduler import Scheduler
from minisgl.scheduler.table import TableManager
from minisgl.scheduler.trace import Trace

TinyModel = Callable[[str], Path]

NO_HANDLE: Any = None


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# --- The guess --------------------------------------------------------------------------------


def wanting(output_len: int, num_generated: int = 0, num_retractions: int = 0) -> Request:
    request = make_request(0, [5, 6], output_len)
    request.token_ids = [7] * num_generated
    request.num_retractions = num_retractions
    return request


@pytest.mark.parametrize(("longest", "expected"), [(1, 1), (2, 1), (3, 2), (10, 5), (1001, 501)])
def test_at_first_half_of_the_longest_answer_is_expected(longest: int, expected: int) -> None:
    assert LengthEstimate().expected_len(wanting(longest)) == expected


def test_an_answer_that_ends_moves_the_guess_by_a_sixteenth_of_the_way() -> None:
    estimate = LengthEstimate()
    estimate.ended(wanting(100, num_generated=20))
    assert estimate.share == pytest.approx(0.5 - 0.3 / 16)
    estimate.ended(wanting(8, num_generated=8))  # its share counts, whatever its length
    assert estimate.share == pytest.approx(0.48125 + (1 - 0.48125) / 16)


def test_the_guess_follows_the_answers_of_late() -> None:
    estimate = LengthEstimate()
    for num_generated, low, high in ((10, 0.1, 0.11), (90, 0.89, 0.9), (30, 0.3, 0.31)):
        for _ in range(100):
            estimate.ended(wanting(100, num_generated))
        assert low <= estimate.share <= high


def test_answers_as_long_as_they_may_be_are_expected_at_full_length() -> None:
    estimate = LengthEstimate()
    for _ in range(400):
        estimate.ended(wanting(50, num_generated=50))
    assert estimate.expected_len(wanting(1000)) == 1000


def test_a_retraction_moves_the_guess_half_the_way_up() -> None:
    estimate = LengthEstimate()
    seen = []
    for _ in range(4):
        estimate.failed()
        seen.append(estimate.share)
    assert seen == [0.75, 0.875, 0.9375, 0.96875]


@pytest.mark.parametrize("num_retractions", [1, 7])
def test_of_whoever_gave_way_the_worst_is_expected(num_retractions: int) -> None:
    estimate = LengthEstimate()
    for num_generated in (0, 3, 19):
        assert estimate.expected_len(wanting(20, num_generated, num_retractions)) == 20


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happened_a_token_is_expected_at_least_and_no_more_than_may_come(
    seed: int,
) -> None:
    chance, estimate = random.Random(seed), LengthEstimate()
    for _ in range(500):
        longest = chance.choice([1, 2, 7, 1000])
        assert 1 <= estimate.expected_len(wanting(longest)) <= longest
        if chance.random() < 0.02:
            estimate.failed()
        estimate.ended(wanting(longest, chance.choice([1, longest])))
        assert 0 < estimate.share <= 1


# --- The order of those who wait --------------------------------------------------------------


def knowing(*prompts: list[int], page_size: int = 1) -> CacheManager:
    """A cache in which these prompts are."""
    cache = CacheManager(400, page_size, torch.zeros(1, 200, dtype=torch.int32))
    for prompt in prompts:
        handle = cache.reserve(0, prompt, len(prompt))
        assert handle is not None
        ids = torch.tensor(prompt, dtype=torch.int32)
        req = Req(ids, 0, handle.cached_len, 1, 0, SamplingParams(), handle)
        req.complete_one()
        cache.free(req)
    return cache


def waiting(*prompts: list[int]) -> list[Request]:
    requests = [make_request(uid, prompt, 4) for uid, prompt in enumerate(prompts)]
    for number, request in enumerate(requests):
        request.number = number
    return requests


def order(policy: Policy, requests: list[Request], cache: CacheManager) -> list[int]:
    return [request.uid for request in policy.order(requests, cache)]


KNOWN = [*range(50, 80)]


def test_first_come_first_served_is_the_order_of_arrival() -> None:
    requests = waiting([5, 6], [*KNOWN[:9], 1], KNOWN)
    requests[0].num_overtaken = 99
    assert order(FirstComeFirstServed(), requests, knowing(KNOWN)) == [0, 1, 2]


def test_whose_prompt_is_cached_furthest_comes_first() -> None:
    requests = waiting([5, 6], [*KNOWN[:9], 1], KNOWN, [*KNOWN[:20], 1], [*KNOWN[:8], 1])
    assert order(LongestPrefixMatch(), requests, knowing(KNOWN)) == [2, 3, 1, 4, 0]
    assert [request.uid for request in requests] == [0, 1, 2, 3, 4]  # those who wait still do


def test_whose_prompts_are_cached_equally_far_come_in_the_order_of_arrival() -> None:
    prompts = [[n, 9] for n in range(5)] + [[*KNOWN[:6], n] for n in range(5)]
    requests = waiting(*prompts)
    assert order(LongestPrefixMatch(), requests, knowing(KNOWN)) == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]
    assert order(LongestPrefixMatch(), requests, knowing()) == [*range(10)]
    # In whole pages of four, six and seven tokens are as good as four.
    requests = waiting([*KNOWN[:4], 1], [*KNOWN[:7], 1], [*KNOWN[:6], 1], [*KNOWN[:8], 1])
    assert order(LongestPrefixMatch(), requests, knowing(KNOWN, page_size=4)) == [3, 0, 1, 2]


def test_what_a_request_has_generated_counts_as_what_it_was_given() -> None:
    requests = waiting(KNOWN[:9], KNOWN[:6])
    requests[1].token_ids = KNOWN[6:12]
    assert order(LongestPrefixMatch(), requests, knowing(KNOWN)) == [1, 0]


@pytest.mark.parametrize(("times", "expected"), [(15, [2, 1, 0]), (16, [0, 2, 1]), (99, [0, 2, 1])])
def test_whoever_was_overtaken_sixteen_times_comes_first(times: int, expected: list[int]) -> None:
    assert MAX_OVERTAKEN == 16
    requests = waiting([5, 6], [*KNOWN[:9], 1], KNOWN)
    requests[0].num_overtaken = times
    assert order(LongestPrefixMatch(), requests, knowing(KNOWN)) == expected


def test_those_whose_patience_is_at_an_end_come_in_the_order_of_arrival() -> None:
    requests = waiting([5, 6], KNOWN, [7, 8], [*KNOWN[:9], 1])
    for number, times in ((0, 20), (2, 16), (3, 30)):
        requests[number].num_overtaken = times
    assert order(LongestPrefixMatch(), requests, knowing(KNOWN)) == [0, 2, 3, 1]


@pytest.mark.parametrize(("place", "first"), [(127, 127), (128, 0)])
def test_only_the_first_128_are_compared(place: int, first: int) -> None:
    prompts = [[200 + n, 9] for n in range(140)]
    prompts[place] = KNOWN
    requests = waiting(*prompts)
    found = order(LongestPrefixMatch(), requests, knowing(KNOWN))
    assert found[0] == first
    assert sorted(found) == [*range(140)]
    assert found[128:] == [*range(128, 140)]


@pytest.mark.parametrize("policy", POLICIES.values())
def test_nobody_is_lost_where_nobody_or_one_waits(policy: type[Policy]) -> None:
    assert [*policy().order([], knowing())] == []
    requests = waiting([5])
    assert [*policy().order(requests, knowing())] == requests


def test_each_policy_can_be_chosen_by_its_name() -> None:
    assert [*POLICIES] == ["fcfs", "lpm"]
    for name, policy in POLICIES.items():
        scheduler: Any = Server(schedule_policy=name).scheduler
        assert type(scheduler._prefill._policy) is policy
    assert EngineConfig("no model").schedule_policy == "fcfs"


@pytest.mark.parametrize("value", ["", "LPM", "fifo", None, 1, ["fcfs"]])
def test_a_policy_that_is_none_is_refused_with_the_rule_and_the_value(value: Any) -> None:
    with pytest.raises(ValueError) as refused:
        EngineConfig("no model", schedule_policy=value)
    assert str(refused.value) == f"schedule_policy must be 'fcfs' or 'lpm', got {value!r}"


@pytest.mark.guard
def test_a_weight_layout_that_is_none_is_still_refused() -> None:
    with pytest.raises(ValueError, match="weight_layout must be 'measured' or 'plain', got 'x'"):
        EngineConfig("no model", weight_layout="x")  # type: ignore[arg-type]


# --- Pages as a request grows -----------------------------------------------------------------


class Pool:
    """A cache manager, and requests that grow in it."""

    def __init__(self, num_pages: int = 40, page_size: int = 4, max_seq_len: int = 64) -> None:
        self.page_size = page_size
        self.page_table = torch.zeros(8, max_seq_len, dtype=torch.int32)
        self.manager = CacheManager(num_pages, page_size, self.page_table)
        self.reqs: list[Req] = []

    def reserve(self, ids: list[int], num_tokens: int | None = None) -> Req:
        """A request whose prompt is computed, with places for `num_tokens`."""
        row = len(self.reqs)
        handle = self.manager.reserve(row, ids, num_tokens or len(ids))
        assert handle is not None
        prompt = torch.tensor(ids, dtype=torch.int32)
        req = Req(prompt, row, handle.cached_len, 100, row, SamplingParams(), handle)
        self.reqs.append(req)
        self.advance(req)
        self.manager.cache_req(req)
        return req

    def advance(self, req: Req) -> None:
        """A pass has given it a token."""
        req.complete_one()
        req.append_host(torch.tensor([200 + req.uid], dtype=torch.int32))

    def grow(self, req: Req) -> bool:
        grown = self.manager.grow(req)
        self.check()
        return grown

    def check(self) -> None:
        """Each page has one owner, and each row mirrors the pages of its request."""
        self.manager.check_invariants(self.reqs)
        size, length = self.page_size, self.page_table.shape[1]
        for req in self.reqs:
            places = [page * size + n for page in pages_of(req) for n in range(size)][:length]
            assert self.page_table[req.table_idx, : len(places)].tolist() == places

    def num_free(self) -> int:
        return self.manager._allocator.num_free


def pages_of(req: Req) -> list[int]:
    return req.cache_handle.pages


@pytest.mark.parametrize("page_size", [1, 2, 3, 4, 16])
def test_a_page_is_taken_exactly_where_one_is_full(page_size: int) -> None:
    pool = Pool(page_size=page_size)
    req = pool.reserve([*range(5, 10)])
    for length in range(6, 40):
        assert req.device_len == length
        assert pool.grow(req)
        assert len(pages_of(req)) == -(-length // page_size)
        pool.advance(req)


@pytest.mark.parametrize("page_size", [1, 4])
def test_within_what_was_expected_nothing_is_taken(page_size: int) -> None:
    pool = Pool(page_size=page_size)
    req = pool.reserve([*range(5, 10)], num_tokens=20)
    before = req.cache_handle
    for _ in range(6, 21):
        assert pool.grow(req) and pool.grow(req)
        assert req.cache_handle is before
        pool.advance(req)
    assert req.device_len == 21
    assert pool.grow(req)
    assert len(pages_of(req)) == len(before.pages) + 1


def test_a_request_grows_into_the_page_behind_its_last_one_where_that_is_free() -> None:
    """Then what it reads stays one run."""
    pool = Pool()
    one = pool.reserve([*range(5, 10)])
    other = pool.reserve([*range(15, 20)], num_tokens=20)
    for _ in range(15):
        for req in (other, one):
            assert pool.grow(req)
            pool.advance(req)
    first = pages_of(other)[0]
    assert pages_of(other) == [*range(first, first + len(pages_of(other)))]
    assert pages_of(one)[:2] == [0, 1] and pages_of(one)[2] != 2  # that is the other one's


def test_unused_prefixes_are_evicted_where_no_page_is_free() -> None:
    pool = Pool(num_pages=6)
    old = pool.reserve([*range(30, 42)])
    pool.manager.free(old)
    pool.reqs.clear()
    req = pool.reserve([*range(5, 10)])
    known = []
    for _ in range(6, 24):
        assert pool.grow(req)
        known.append(pool.manager.num_cached_tokens([*range(30, 42)]))
        pool.advance(req)
    assert known == [12] * 7 + [8] * 4 + [4] * 4 + [0] * 3


def test_without_a_page_nothing_changes() -> None:
    pool = Pool(num_pages=5)
    pool.reserve([*range(30, 42)])
    req = pool.reserve([*range(5, 12)])
    for _ in range(4):
        if not pool.grow(req):
            break
        pool.advance(req)
    before = req.cache_handle, pool.page_table.clone(), req.device_len
    assert before[2] == 9
    for _ in range(3):
        assert not pool.grow(req)
        assert req.cache_handle is before[0] and req.device_len == 9
        assert torch.equal(pool.page_table, before[1])
    assert pool.manager.num_cached_tokens([*range(30, 42)]) == 12


def test_what_others_read_is_not_evicted_for_whoever_grows() -> None:
    pool = Pool(num_pages=4, page_size=1)
    first = pool.reserve([5, 6])
    reader = pool.reserve([5, 6, 7])
    assert pages_of(reader)[:2] == pages_of(first)
    pool.manager.free(first)
    pool.reqs.remove(first)
    assert pool.grow(reader)
    pool.advance(reader)
    assert not pool.grow(reader)


def test_several_pages_are_given_at_once_or_none() -> None:
    pool = Pool(num_pages=6)
    req = pool.reserve([*range(5, 10)])
    req.device_len = 26
    assert not pool.grow(req)
    assert (len(pages_of(req)), pool.num_free()) == (2, 4)
    req.device_len = 24
    assert pool.grow(req)
    assert (len(pages_of(req)), pool.num_free()) == (6, 0)


def test_a_row_that_ends_within_a_page_takes_what_it_has_columns_for() -> None:
    pool = Pool(max_seq_len=10)
    req = pool.reserve([*range(5, 9)])
    while req.device_len < 10:
        assert pool.grow(req)
        pool.advance(req)
    assert pool.grow(req) and len(pages_of(req)) == 3


@pytest.mark.parametrize("kept", [True, False])
def test_what_a_request_grew_comes_back(kept: bool) -> None:
    pool = Pool(page_size=1)
    req = pool.reserve([*range(5, 10)])
    for _ in range(20):
        assert pool.grow(req)
        pool.advance(req)
    known = req.input_ids.tolist()
    (pool.manager.free if kept else pool.manager.drop)(req)
    pool.reqs.clear()
    pool.check()
    # 25 tokens have KV; what came after the prompt is the tree's only if the request lets it go.
    assert pool.manager.num_cached_tokens(known) == (25 if kept else 5)
    assert pool.num_free() == 40 - (25 if kept else 5)


# --- Who is let in ----------------------------------------------------------------------------


class Admission:
    """A prefill manager with its table and its cache."""

    def __init__(
        self, num_pages: int = 99, page_size: int = 4, num_rows: int = 8, policy: str = "fcfs"
    ) -> None:
        page_table = torch.zeros(num_rows, 200, dtype=torch.int32)
        self.table = TableManager(page_table)
        self.cache = CacheManager(num_pages, page_size, page_table)
        self.manager = PrefillManager(self.table, self.cache, page_size, POLICIES[policy]())
        self.uids = itertools.count()

    def add(self, prompt: list[int], output_len: int = 1) -> Request:
        request = make_request(next(self.uids), prompt, output_len)
        request.number = request.uid
        self.manager.waiting[request.uid] = request
        return request

    def schedule(self, num_tokens: int = 10**6) -> list[int]:
        chosen = [request.uid for request in self.manager.schedule(num_tokens)]
        holding = [request.req for request in self.manager.running.values()]
        self.table.check_invariants(holding)
        self.cache.check_invariants(holding)
        return chosen

    def compute(self, *requests: Request) -> None:
        """A pass has given these a token."""
        for request in requests:
            request.req.complete_one()
            request.req.append_host(torch.tensor([9], dtype=torch.int32))
            request.token_ids.append(9)

    def leave(self, *requests: Request) -> None:
        for request in requests:
            self.cache.free(request.req)
            self.table.free(request.req.table_idx)
            del self.manager.running[request.uid]

    def retract(self, request: Request) -> None:
        self.leave(request)
        request.num_retractions += 1
        request.move(State.WAITING)
        self.manager.take_back(request)


@pytest.mark.parametrize(
    ("share", "num_pages"), [(0.01, 3), (0.05, 3), (0.1, 4), (0.5, 6), (0.51, 6), (1.0, 8)]
)
def test_who_is_admitted_has_places_for_what_it_is_expected_to_say(
    share: float, num_pages: int
) -> None:
    """The last token of an answer needs none."""
    place = Admission()
    place.manager.estimate.share = share
    request = place.add(apart(0, 12), output_len=20)
    assert place.schedule() == [0]
    assert len(pages_of(request.req)) == num_pages
    assert (request.req.max_device_len, request.req.output_len) == (32, 20)


def test_more_are_admitted_than_in_the_worst_case() -> None:
    place = Admission(num_pages=20)
    for uid in range(8):
        place.add(apart(uid, 4), output_len=17)  # five pages in the worst case, three expected
    assert place.schedule() == [*range(6)]
    place = Admission(num_pages=20)
    place.manager.estimate.share = 1.0
    for uid in range(8):
        place.add(apart(uid, 4), output_len=17)
    assert place.schedule() == [*range(4)]


def test_a_request_that_is_taken_back_waits_where_it_came() -> None:
    place = Admission(num_rows=3)
    requests = [place.add(apart(uid), 5) for uid in range(6)]
    assert place.schedule() == [0, 1, 2]
    for taken in (2, 0):
        place.retract(requests[taken])
    assert [*place.manager.waiting] == [0, 2, 3, 4, 5]
    assert place.manager.waiting[2] is requests[2]
    assert place.schedule() == [1, 0, 2]


def test_whoever_gave_way_goes_on_from_what_the_cache_kept() -> None:
    place = Admission(page_size=4)
    request = place.add(apart(0, 10), 9)
    place.schedule()
    for _ in range(4):
        place.compute(request)
    req = request.req
    assert req.cached_len == 13 and request.num_cached_tokens == 0
    place.retract(request)
    assert place.schedule() == [0]
    assert request.req is req
    assert (req.cached_len, req.device_len, req.prompt_len) == (12, 14, 10)
    assert (request.state, request.num_cached_tokens) == (State.PREFILL, 0)
    assert place.table.token_pool[req.table_idx, :14].tolist() == [*apart(0, 10), 9, 9, 9, 9]
    assert len(pages_of(req)) == 5  # for 18 tokens: all that may come
    place.compute(request)
    assert len(req.input_ids) == 15


def test_whoever_gave_way_computes_its_known_tokens_in_pieces_too() -> None:
    place = Admission(page_size=16)
    request = place.add(apart(0, 10), 9)
    place.schedule()
    for _ in range(4):
        place.compute(request)
    place.retract(request)
    seen = []
    for budget in (6, 5, 8):
        place.schedule(budget)
        seen.append((request.req.cached_len, request.req.device_len, request.req.is_chunk))
        request.req.complete_one()
    assert seen == [(0, 6, True), (6, 11, True), (11, 14, False)]


def test_whoever_gave_way_comes_back_only_where_its_worst_case_fits() -> None:
    place = Admission(num_pages=9)
    older, request = place.add(apart(0, 12), 5), place.add(apart(1, 10), 15)
    assert place.schedule() == [0, 1]  # four pages, and five; all that it may need are six
    place.compute(older, request)
    place.retract(request)
    place.add(apart(2, 3))
    for _ in range(2):
        assert place.schedule() == [0]  # a page would do for the other one: it does not overtake
    place.leave(older)
    assert place.schedule() == [1, 2]
    assert len(pages_of(request.req)) == 6


def test_who_is_admitted_has_overtaken_all_who_came_before_it() -> None:
    place = Admission(num_rows=2, page_size=1, policy="lpm")
    place.add(KNOWN)
    place.schedule()
    place.compute(known := place.manager.running[0])
    place.leave(known)
    prompts = [[5], [6], [*KNOWN[:9], 1], [7], [*KNOWN[:4], 1]]
    requests = [place.add(prompt) for prompt in prompts]
    assert place.schedule() == [3, 5]
    assert [request.num_overtaken for request in requests] == [2, 2, 0, 1, 0]
    place.retract(requests[4])
    assert place.schedule() == [3, 5]
    assert [request.num_overtaken for request in requests] == [3, 3, 0, 2, 0]


def test_first_come_first_served_overtakes_nobody() -> None:
    place = Admission(num_rows=2)
    requests = [place.add(apart(uid)) for uid in range(6)]
    for _ in range(3):
        place.schedule()
        place.leave(*place.manager.running.values())
    assert [request.num_overtaken for request in requests] == [0] * 6


def test_without_a_free_row_nobody_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matching the prompts of all who wait takes time in every step."""
    place = Admission(num_rows=1, policy="lpm")
    asked: list[int] = []
    original = LongestPrefixMatch.order

    def watch(self: Any, requests: Any, cache: Any) -> Any:
        asked.append(len(requests))
        return original(self, requests, cache)

    monkeypatch.setattr(LongestPrefixMatch, "order", watch)
    for uid in range(4):
        place.add(apart(uid))
    assert place.schedule() == place.schedule() == [0]
    assert asked == [4]


# --- Where a request stands -------------------------------------------------------------------

WAYS = {
    ("WAITING", "PREFILL"),
    ("WAITING", "ABORTED"),
    ("PREFILL", "WAITING"),
    ("PREFILL", "DECODE"),
    ("PREFILL", "FINISHED"),
    ("PREFILL", "ABORTED"),
    ("DECODE", "WAITING"),
    ("DECODE", "FINISHED"),
    ("DECODE", "ABORTED"),
}


@pytest.mark.guard
def test_a_state_leads_to_these_and_to_no_other_now() -> None:
    for old, new in itertools.product(State, State):
        if (old.name, new.name) in WAYS:
            check_transition(old, new)
        else:
            with pytest.raises(AssertionError, match=f"{old.name}.*{new.name}"):
                check_transition(old, new)


def test_a_queue_timeout_is_for_those_who_have_never_begun() -> None:
    request = Request(0, [5, 6], 4, SamplingParams(), queue_timeout=2.0, timeout=9.0)
    assert [request.is_late(now) for now in (10.0, 11.0)] == [False, False]
    for state in (State.PREFILL, State.WAITING):
        request.move(state)
    request.num_retractions += 1
    assert [request.is_late(now) for now in (12.0, 18.75, 19.0)] == [False, False, True]


# --- Steps ------------------------------------------------------------------------------------


def hopeful(share: float | None = 0.01, **options: Any) -> Server:
    """A server that expects answers to be short: a request is admitted with a token's room."""
    server = Server(**{"page_size": 1, "num_pages": 20} | options)
    if share is not None:
        server.scheduler._prefill.estimate.share = share
    return server


def pieces_of(server: Server, request: Request) -> list[tuple[int, int]]:
    """What each pass has computed of a request."""
    found = [batch.get(request.uid) for batch in server.engine.batches]
    return [piece for piece in found if piece is not None]


def num_retractions(*requests: Request) -> list[int]:
    return [request.num_retractions for request in requests]


def test_more_run_at_once_in_the_same_pool_and_say_the_same() -> None:
    """Answers of two to eleven tokens, of at most 24."""
    most, answers = {}, {}
    for share in (1.0, None):
        server = hopeful(share, num_pages=96, max_seq_len=49, max_running_reqs=32)
        params = {"stop_token_ids": [*range(3, 80)]}
        requests = [server.add(apart(uid, 8), 24, **params) for uid in range(40)]
        if share is not None:  # always the worst case, as before this chapter
            estimate: Any = server.scheduler._prefill.estimate
            estimate.ended = estimate.failed = lambda *_: None
        while not all(request.finish_reason for request in requests):
            server.step()
        most[share] = max(map(len, server.passes()))
        answers[share] = [request.token_ids for request in requests]
        assert server.is_empty()
    assert answers[None] == answers[1.0]
    assert {len(tokens) for tokens in answers[None]} <= {*range(1, 25)}
    assert most[1.0] == 96 // 31 and most[None] > 1.5 * most[1.0]


def test_a_request_takes_pages_as_it_grows() -> None:
    server = hopeful(page_size=4)
    request = server.add(apart(0, 6), 20)
    held = []
    for _ in range(19):
        server.step()
        held.append(len(pages_of(request.req)))
    assert held == [2] * 3 + [3] * 4 + [4] * 4 + [5] * 4 + [6] * 4
    server.drain(request)


def test_of_two_that_need_the_last_page_the_older_one_gets_it() -> None:
    """And keeps it: they do not take it from each other for ever."""
    server = hopeful(num_pages=10)
    older, younger = server.add(apart(0, 2), 8), server.add(apart(1, 2), 8)
    server.drain(older, younger)
    assert num_retractions(older, younger) == [0, 1]
    # Both have five places, then the older one has them all; the other follows when it is done.
    assert server.passes() == [[0, 1]] * 4 + [[0]] * 4 + [[1]] * 4
    assert server.is_empty()


def test_the_youngest_gives_way_whoever_lacks_the_page() -> None:
    server = hopeful(share=1.0, num_pages=17)
    requests = [server.add(apart(0, 3), 7)]  # nine places from the start
    server.step()
    server.scheduler._prefill.estimate.share = 0.01
    requests += [server.add(apart(uid, 3), 7) for uid in (1, 2)]
    server.step(2)
    assert server.passes()[-1] == [0, 1, 2]  # nine places, four and four
    server.step()
    assert [request.state.name for request in requests] == ["DECODE", "DECODE", "WAITING"]
    assert server.passes()[-1] == [0, 1]
    server.drain(*requests)
    assert num_retractions(*requests) == [0, 0, 1]


def test_the_youngest_is_who_came_last_and_not_who_was_admitted_last() -> None:
    server = hopeful(num_pages=30, max_running_reqs=2, schedule_policy="lpm")
    server.drain(server.add(apart(3, 8)))
    running, late = server.add(apart(0, 3), 3), server.add(apart(1, 3), 26)
    known = server.add([*apart(3, 8), 9], 20)
    server.step()
    assert server.passes()[-1] == [3, 1]  # what it shares is cached
    while late.state is State.WAITING:
        server.step()
    server.drain(running, late, known)
    assert num_retractions(running, late, known) == [0, 0, 1]


def test_whoever_lacks_a_page_and_is_the_youngest_gives_way_itself() -> None:
    server = hopeful(share=1.0, num_pages=16)
    older = server.add(apart(0, 4), 7)  # ten places from the start
    server.step()
    server.scheduler._prefill.estimate.share = 0.01
    younger = server.add(apart(1, 4), 10)
    while not younger.num_retractions:
        server.step()
    assert (younger.state, len(younger.token_ids)) == (State.WAITING, 3)
    assert pieces_of(server, older)[-1] == (7, 8)
    server.drain(older, younger)


def test_one_who_has_no_page_of_its_own_is_not_enough() -> None:
    """All that it holds is read by another: that one gives way as well."""
    server = hopeful(page_size=4, num_pages=4, max_seq_len=17)
    server.drain(server.add(apart(1, 8)))
    requests = [server.add(apart(0, 3), 9)]
    server.step()
    requests += [server.add(apart(1, 8), 4) for _ in range(2)]
    server.step()
    assert server.passes()[-1] == [1, 2, 3]
    assert pages_of(requests[1].req) == pages_of(requests[2].req)
    server.step()  # the one free page goes to the oldest; there is none for the two
    assert num_retractions(*requests) == [0, 1, 1]
    assert server.passes()[-1] == [1]
    server.drain(*requests)


def test_nobody_is_admitted_into_what_was_given_back_for_others() -> None:
    server = hopeful(num_pages=12)
    requests = [server.add(apart(uid, 3), 7) for uid in range(3)]
    server.step(2)  # they have four places each
    small = server.add(apart(3, 1))
    server.step()
    assert requests[2].state is State.WAITING
    held = [len(pages_of(request.req)) for request in requests[:2]]
    assert sum(held) == 10 and small.state is State.WAITING  # two are left
    server.drain(*requests, small)


def test_what_a_victim_had_computed_is_found_again() -> None:
    """As far as nobody has needed its pages meanwhile."""
    server = hopeful(num_pages=24)
    older, victim = server.add(apart(0, 6), 9), server.add(apart(1, 6), 9)
    server.drain(older, victim)
    assert num_retractions(older, victim) == [0, 1]
    # Both had 12 places. The older one needed 14: the last two of the other's were evicted.
    assert pieces_of(server, victim)[6:] == [(11, 12), (10, 13), (13, 14)]


def test_a_victim_that_comes_back_at_once_computes_one_token() -> None:
    server = hopeful(num_pages=24, max_seq_len=25)
    older, victim = server.add(apart(0, 8), 6), server.add(apart(1, 8), 8)
    server.step(4)
    held = victim.req.cached_len
    server.scheduler._retract(victim)
    server.scheduler.abort(older.uid)
    server.step()
    assert pieces_of(server, victim)[-1] == (held, held + 1)
    assert (victim.num_retractions, victim.num_cached_tokens) == (1, 0)
    server.drain(victim)


def test_what_a_request_says_of_its_cached_prompt_stays() -> None:
    """What it finds of its own after it gave way is no saving."""
    server = hopeful(num_pages=16, page_size=2)
    server.drain(server.add(apart(1, 6)))
    older, victim = server.add(apart(0, 9), 12), server.add([*apart(1, 6), 9], 12)
    server.drain(older, victim)
    assert num_retractions(older, victim) == [0, 1]
    assert (older.num_cached_tokens, victim.num_cached_tokens) == (0, 6)
    assert server.is_empty()


def test_in_the_middle_of_its_prompt_a_request_gives_way_too() -> None:
    server = hopeful(num_pages=26, max_batch_tokens=6)
    older, victim = server.add(apart(0, 5), 20), server.add(apart(1, 19), 3)
    while not victim.num_retractions:
        server.step()
        assert victim.state in (State.WAITING, State.PREFILL)
    assert victim.state is State.WAITING and victim.token_ids == []
    begun = pieces_of(server, victim)[-1][1]
    server.drain(older, victim)
    # Of its eleven places the older one needed all but two.
    pieces = [(2, 8), (8, 14), (14, 19), (19, 20), (20, 21)]
    assert (begun, pieces_of(server, victim)[-5:]) == (11, pieces)
    assert victim.num_cached_tokens == 0
    assert server.is_empty()


def test_a_token_that_ends_an_answer_ends_it_after_a_retraction_too() -> None:
    server = hopeful(num_pages=10)
    answer = server.engine.answer(apart(1, 2), 8)
    older, younger = (
        server.add(apart(0, 2), 8),
        server.add(apart(1, 2), 8, stop_token_ids=[answer[6]]),
    )
    server.drain(older)
    while not younger.finish_reason:
        server.step()
    assert num_retractions(older, younger) == [0, 1]
    assert (younger.token_ids, younger.finish_reason) == (answer[:7], "stop")


def test_the_sampler_is_told_the_same_after_a_retraction() -> None:
    """Which token it is, what came before, and what is banned yet."""
    seen = {}
    for num_pages in (40, 10):
        server = hopeful(num_pages=num_pages, eos_ids=[2])
        params = {"temperature": 1.0, "seed": 3, "frequency_penalty": 0.5, "min_tokens": 7}
        requests = server.add(apart(0, 2), 8), server.add(apart(1, 2), 8, **params, logprobs=1)
        told: list[Any] = []
        original = server.engine.forward_batch

        def watch(batch: Batch, told: list[Any] = told, original: Any = original) -> Any:
            args = batch.sampling_args
            for penalty in args.penalties:
                row = penalty.row
                known = penalty.prompt_ids.tolist(), penalty.generated_ids.tolist()
                banned = [ids for number, ids in args.banned if number == row]
                uniform = args.filters.uniform[row].item() if args.filters else None
                told.append((known, banned, uniform, args.num_logprobs[row]))
            return original(batch)

        with passes_by(server.engine, watch):
            server.drain(*requests)
        seen[num_pages] = told
        assert num_retractions(*requests) == [0, int(num_pages == 10)]
    assert seen[10] == seen[40] and len(seen[10]) == 8


# --- Nobody is lost ---------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(15))
def test_under_any_pressure_the_oldest_advances_in_every_step(seed: int, policy: str) -> None:
    chance = random.Random(seed)
    options: dict[str, Any] = {
        "page_size": chance.choice([1, 2, 4]),
        "num_pages": chance.randint(8, 16),
        "max_running_reqs": chance.randint(2, 8),
        "max_batch_tokens": chance.choice([1, 4, 64]),
    }
    longest = options["page_size"] * options["num_pages"] + 1
    server = hopeful(letters=3, schedule_policy=policy, max_seq_len=longest, **options)
    requests: list[Request] = []
    for number in itertools.count():
        assert number < 5000
        if number < 40:
            output_len = chance.randint(1, min(20, longest - 1))
            length = chance.randint(1, min(12, longest - output_len))
            prompt = [5 + chance.randrange(2) for _ in range(length)]
            requests.append(server.add(prompt, output_len))
        elif all(request.finish_reason for request in requests):
            break
        server.scheduler._prefill.estimate.share = 0.01  # it learns nothing
        running = server.scheduler._running()
        oldest = min(running, key=lambda request: request.number) if running else None
        server.engine.batches.append({})
        server.step()
        if oldest:
            assert oldest.uid in server.engine.batches[-1]
            assert oldest.state is not State.WAITING
    server.drain(*requests)
    assert sum(num_retractions(*requests)) > 0
    assert server.is_empty()


@pytest.mark.parametrize("seed", range(10))
def test_whoever_gave_way_makes_nobody_give_way_and_each_does_so_a_bounded_number_of_times(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its worst case from then on; and it is back only once an older one has ended."""
    chance = random.Random(seed)
    server = hopeful(letters=3, num_pages=30, max_running_reqs=8)
    lacking: list[Request] = []
    by_req: dict[Req, Request] = {}
    original = CacheManager.grow

    def grow(self: CacheManager, req: Req) -> bool:
        grown = original(self, req)
        if not grown:
            lacking.append(by_req[req])
            assert by_req[req].num_retractions == 0
        return grown

    monkeypatch.setattr(CacheManager, "grow", grow)
    requests = [server.add(apart(uid, chance.randint(2, 8)), 18) for uid in range(30)]
    while not all(request.finish_reason for request in requests):
        server.scheduler._prefill.estimate.share = 0.01
        server.step()
        by_req |= {request.req: request for request in server.scheduler._running()}
    assert len(lacking) > 10
    for number, request in enumerate(requests):
        assert request.num_retractions <= 1 + number
    server.drain(*requests)


def test_the_guess_learns_from_who_gives_way() -> None:
    server = hopeful(num_pages=10)
    retracted(server)
    assert server.scheduler._prefill.estimate.share == (1 + 0.01) / 2


def test_the_guess_learns_from_complete_answers() -> None:
    server = hopeful(share=0.5, num_pages=200)
    estimate: Any = server.scheduler._prefill.estimate
    server.drain(server.add(apart(0), 40))
    assert estimate.share == pytest.approx(0.5 + 0.5 / 16)
    stops = server.add(apart(1), 40, stop_token_ids=[server.engine.answer(apart(1), 1)[0]])
    server.step()
    assert stops.finish_reason == "stop"
    before = estimate.share
    assert before == pytest.approx(0.53125 + (1 / 40 - 0.53125) / 16)
    aborted, late = server.add(apart(2), 40), server.add(apart(3), 40, {"timeout": 1.0})
    server.step()
    server.scheduler.abort(aborted.uid)
    server.step(now=5.0)
    assert [aborted.finish_reason, late.finish_reason] == ["abort", "timeout"]
    assert estimate.share == before, "an answer that was cut off says nothing of its length"


@pytest.mark.parametrize("num_rows", [1, 2, 4])
def test_a_request_that_shares_nothing_waits_for_a_stated_number_of_others(num_rows: int) -> None:
    """Sixteen, and those who are admitted in the same step as the sixteenth."""
    server = hopeful(share=1.0, num_pages=60, max_running_reqs=num_rows, schedule_policy="lpm")
    server.drain(server.add(KNOWN[:8]))
    running = [server.add([*KNOWN[:8], uid], 2) for uid in range(num_rows)]
    server.step()
    cold = server.add(apart(9), 2)
    for number in range(100):
        running += [server.add([*KNOWN[:8], 90, number, n], 2) for n in range(num_rows)]
        server.step()
        if cold.state is not State.WAITING:
            break
    assert MAX_OVERTAKEN <= cold.num_overtaken < MAX_OVERTAKEN + num_rows
    server.drain(cold, *running)


def test_whoever_was_overtaken_often_enough_does_not_stand_back() -> None:
    """Two begin alike: after eighteen others the first goes, and the second beside it."""
    server = hopeful(share=1.0, num_pages=300, max_running_reqs=3, schedule_policy="lpm")
    server.drain(server.add(KNOWN[:8]))
    running = [server.add([*KNOWN[:8], uid], 2) for uid in range(3)]
    server.step()
    alike = [server.add([*apart(9, 40), uid], 2) for uid in range(2)]
    for number in range(100):
        running += [server.add([*KNOWN[:8], 90, number, n], 2) for n in range(3)]
        server.step()
        if alike[1].state is not State.WAITING:
            break
    assert [request.num_overtaken for request in alike] == [18, 18]
    assert server.passes()[-1][:2] == [request.uid for request in alike]
    server.drain(*alike, *running)


def test_in_the_order_of_arrival_it_waits_for_none() -> None:
    server = hopeful(share=1.0, num_pages=60, max_running_reqs=1)
    server.drain(server.add(KNOWN[:8]))
    running = server.add([*KNOWN[:8], 1], 2)
    server.step()
    cold, known = server.add(apart(9), 2), server.add([*KNOWN[:8], 2], 2)
    server.drain(running, cold, known)
    assert (cold.num_overtaken, known.num_overtaken) == (0, 0)
    assert [*dict.fromkeys(uid for one in server.passes() for uid in one)][-2:] == [2, 3]


def test_by_longest_prefix_what_is_cached_is_used_before_it_is_evicted() -> None:
    """Two prefixes of which the pool holds one; the questions on them come in turns."""
    num_cached = {}
    for policy in POLICIES:
        server = hopeful(share=1.0, num_pages=40, max_running_reqs=1, schedule_policy=policy)
        prefixes = [[30 + n, *range(50, 79)] for n in range(2)]
        requests = [server.add([*prefixes[uid % 2], uid], 2) for uid in range(10)]
        server.drain(*requests)
        num_cached[policy] = sum(request.num_cached_tokens for request in requests)
    assert num_cached["lpm"] == 8 * 30 > 3 * num_cached["fcfs"]


# --- Ended while it waits again ---------------------------------------------------------------


def retracted(server: Server, limits: Any = None) -> tuple[Request, Request]:
    """An older request that runs, and one that had to give way to it."""
    older, victim = server.add(apart(0, 2), 8), server.add(apart(1, 2), 8, limits)
    while not victim.num_retractions:
        server.step(now=1.0)
    assert (victim.state, len(victim.token_ids)) == (State.WAITING, 4)
    return older, victim


@pytest.mark.parametrize("reason", ["abort", "timeout"])
def test_whoever_gave_way_may_be_ended_while_it_waits(reason: str) -> None:
    server = hopeful(num_pages=10)
    older, victim = retracted(server, {"timeout": 5.0} if reason == "timeout" else None)
    server.scheduler.abort(victim.uid if reason == "abort" else -1)
    server.step(now=6.0)
    assert (victim.finish_reason, victim.state) == (reason, State.ABORTED)
    assert victim.token_ids == server.answer(victim)[:4]
    server.drain(older)
    assert 1 not in server.passes()[-1]
    assert server.is_empty()


def test_a_queue_timeout_does_not_end_whoever_gave_way() -> None:
    server = hopeful(num_pages=10)
    older, victim = retracted(server, {"queue_timeout": 2.0})
    server.step(now=1e6)
    assert victim.finish_reason is None
    server.drain(older, victim)


def test_an_abort_frees_what_others_lack_before_anybody_gives_way() -> None:
    server = hopeful(num_pages=10)
    older, younger = server.add(apart(0, 2), 8), server.add(apart(1, 2), 8)
    server.step(4)  # now both need a sixth place
    server.scheduler.abort(older.uid)
    server.drain(younger)
    assert num_retractions(older, younger) == [0, 0]


def test_a_pass_that_fails_does_not_touch_whoever_gave_way() -> None:
    server = hopeful(num_pages=10)
    older, victim = retracted(server)
    with failing(server, Failure()):
        server.step()
    assert (older.finish_reason, victim.state) == ("error", State.WAITING)
    server.drain(victim)
    assert server.is_empty()


def test_after_ctrl_c_whoever_gave_way_goes_on_from_its_tokens() -> None:
    server = hopeful(num_pages=10)
    older, victim = retracted(server)
    with failing(server, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        server.step()
    server.drain(victim)
    assert older.finish_reason == "error" and "ask again" in str(older.error)
    assert pieces_of(server, victim)[4] == (0, 6)  # nothing that was in the cache can be trusted
    assert server.is_empty()


def test_a_row_without_scores_ends_alone_after_a_retraction_too() -> None:
    server = hopeful(num_pages=10)
    older, victim = retracted(server)
    server.drain(older)
    with without_scores(server, victim.uid):
        while not victim.finish_reason:
            server.step()
    assert (victim.finish_reason, victim.token_ids) == ("error", server.answer(victim)[:4])
    assert server.is_empty()


def test_an_interrupt_at_any_line_of_such_steps_leaves_everything_usable() -> None:
    place: list[str] = ["not yet"]
    number, outcomes = 0, set()
    server = hopeful(num_pages=12, max_seq_len=13)
    while place:
        number += 1
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
        for _ in range(100):
            if all(request.finish_reason for request in everybody):
                break
            server.step()
        for request in everybody:
            answer, reason = server.answer(request), request.finish_reason
            assert reason in ("length", "error"), (place, request)
            assert request.token_ids == answer[: len(request.token_ids)], place
            assert reason != "length" or request.token_ids == answer, place
            if reason == "error":
                assert "ask again" in str(request.error), place
            retracted_once = request.num_retractions > 0
            outcomes.add((everybody.index(request), reason, retracted_once))
    assert number > 300
    assert {(0, "error", False), (0, "length", False), (2, "length", True)} <= outcomes
    assert {(2, "error", True), (2, "error", False), (3, "length", False)} <= outcomes


# --- What is recorded -------------------------------------------------------------------------


def untimed(trace: Trace) -> list[dict[str, Any]]:
    return [{key: value for key, value in e.items() if key != "time"} for e in trace.events]


def test_a_trace_says_who_gave_way_before_the_pass_that_it_is_not_in() -> None:
    server = hopeful(num_pages=10)
    server.scheduler.trace = trace = Trace()
    older, victim = retracted(server)
    events = untimed(trace)
    assert events[-3:] == [
        {"event": "retract", "uid": victim.uid},
        {"event": "launch", "phase": "decode", "lengths": {older.uid: (5, 6)}},
        {"event": "result", "tokens": {older.uid: older.token_ids[-1]}},
    ]
    server.drain(older, victim)
    assert [event["event"] for event in untimed(trace)].count("retract") == 1


def test_a_timeline_shows_that_it_waits_again_and_is_computed_again(tmp_path: Path) -> None:
    server = hopeful(num_pages=10)
    server.scheduler.trace = trace = Trace()
    older, victim = retracted(server)
    server.drain(older, victim)
    trace.write_chrome(tmp_path / "trace.json")
    spans = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    mine = sorted((s for s in spans if s["tid"] == 1 + victim.uid), key=lambda span: span["ts"])
    assert [span["name"] for span in mine] == [*("waiting", "prefill", "decode") * 2]
    for one, following in itertools.pairwise(mine):
        assert one["ts"] + one["dur"] == pytest.approx(following["ts"])
    [gave_way] = [1e6 * event["time"] for event in trace.events if event["event"] == "retract"]
    assert mine[3]["ts"] == pytest.approx(gave_way)


@pytest.mark.parametrize("policy", POLICIES)
def test_equal_inputs_give_equal_traces_and_retractions(policy: str) -> None:
    def run() -> list[dict[str, Any]]:
        chance = random.Random(3)
        server = hopeful(letters=3, num_pages=14, max_seq_len=15, schedule_policy=policy)
        server.scheduler.trace = trace = Trace()
        for now in range(120):
            for _ in range(chance.choice([0, 0, 1, 2]) if now < 60 else 0):
                prompt = [5 + chance.randrange(2) for _ in range(chance.randint(1, 6))]
                server.add(prompt, chance.randint(1, 9), {"timeout": chance.choice([None, 50.0])})
            if chance.random() < 0.1:
                server.scheduler.abort(chance.randrange(20))
            server.scheduler._prefill.estimate.share = 0.01
            server.step(now=float(now))
        return untimed(trace)

    first = run()
    assert first == run()
    assert sum(event["event"] == "retract" for event in first) >= 3


# --- Real passes ------------------------------------------------------------------------------


def up_to(max_tokens: int, **params: Any) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, ignore_eos=True, **params)


@torch.inference_mode()
def assert_tokens_of(oracle: Any, request: Request) -> None:
    """One pass over our own text: while all tokens so far are the oracle's, so is the next."""
    ids = torch.tensor([[*request.input_ids, *request.token_ids[:-1]]])
    logits = oracle(ids, use_cache=False, logits_to_keep=len(request.token_ids)).logits[0]
    assert logits.argmax(-1).tolist() == request.token_ids


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("arch", "page_size"), [("llama", 1), ("qwen3", 4), ("qwen2", 16)])
def test_the_tokens_under_heavy_retraction_are_those_of_transformers(
    arch: str, page_size: int, policy: str, tiny_model: TinyModel
) -> None:
    folder, chance = tiny_model(arch), random.Random(page_size)
    oracle = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    options: dict[str, Any] = {"page_size": page_size, "num_pages": 96 // page_size}
    options |= {"max_seq_len": 97, "max_running_reqs": 6, "max_batch_tokens": 40}
    config = EngineConfig(folder, schedule_policy=policy, **options)  # type: ignore[arg-type]
    scheduler = Scheduler(Engine(config), frozenset())
    shared = chance.choices(range(3, 384), k=30)
    requests: list[Request] = []
    for number in range(2000):
        if len(requests) < 20 and number % 3 == 0:
            prompt = shared[: chance.choice([0, 0, 30])]
            prompt += chance.choices(range(3, 384), k=chance.randint(1, 12))
            requests.append(make_request(len(requests), prompt, chance.randint(1, 40)))
            scheduler.add(requests[-1])
        scheduler._prefill.estimate.share = 0.01
        scheduler.step()
        scheduler.check_invariants()
        if len(requests) == 20 and all(request.finish_reason for request in requests):
            break
    assert sum(num_retractions(*requests)) >= 8
    for request in requests:
        assert request.finish_reason == "length"
        assert_tokens_of(oracle, request)


PARAMS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "drawn": {"temperature": 1.5, "seed": 7},
    "drawn by the engine's seed": {"temperature": 1.5},
    "top-p": {"temperature": 2.0, "top_p": 0.8, "seed": 8},
    "penalties": {"repetition_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.5},
    "min_tokens": {"min_tokens": 16, "stop_token_ids": [*range(3, 384, 2)]},
    "logprobs": {"logprobs": 4},
}


@pytest.mark.parametrize("name", PARAMS)
def test_what_a_request_asks_of_the_sampler_holds_after_a_retraction(
    name: str, tiny_model: TinyModel
) -> None:
    """Its answer is the one that it gets in a pool for all."""
    chance = random.Random(4)
    prompts = [chance.choices(range(3, 384), k=length) for length in (9, 2, 14, 5)]
    params = [up_to(24, **PARAMS[name]) for _ in prompts]
    options: dict[str, Any] = {"max_seq_len": 41, "page_size": 2, "max_running_reqs": 4}
    with LLM(tiny_model("llama"), num_pages=200, **options) as llm:
        roomy = llm.generate(prompts, params)
    with LLM(tiny_model("llama"), num_pages=20, **options) as llm:
        llm.scheduler.trace = trace = Trace()
        llm.scheduler._prefill.estimate.share = 0.01
        tight = llm.generate(prompts, params)
    retracted = {event["uid"] for event in trace.events if event["event"] == "retract"}
    assert len(retracted) >= 1
    for one, other in zip(roomy, tight, strict=True):
        assert (one.token_ids, one.finish_reason) == (other.token_ids, other.finish_reason)
        for left, right in zip(one.logprobs or [], other.logprobs or [], strict=True):
            assert left.logprob == pytest.approx(right.logprob, abs=1e-4)
            assert [token for token, _ in left.top] == [token for token, _ in right.top]


def test_a_stream_that_gave_way_goes_on_without_a_gap_in_its_text(tiny_model: TinyModel) -> None:
    options: dict[str, Any] = {"max_seq_len": 41, "page_size": 4, "num_pages": 10}
    with LLM(tiny_model("llama"), **options) as llm:
        [alone] = llm.generate([[7, 8, 9]], up_to(20))
        llm.scheduler.trace = trace = Trace()
        llm.scheduler._prefill.estimate.share = 0.01
        first, second = llm.stream([300, 5], up_to(30)), llm.stream([7, 8, 9], up_to(20))
        next(first)
        pieces = [next(second)]
        assert len([*first]) == 29
        pieces += second
        assert [token for piece in pieces for token in piece.token_ids] == alone.token_ids
        assert "".join(piece.text for piece in pieces) == alone.text
        assert [e["uid"] for e in trace.events if e["event"] == "retract"] == [2]


@pytest.mark.slow
def test_the_real_model_answers_the_same_in_a_pool_that_is_too_small(real_model: Path) -> None:
    prompts = [f"The capital of {country} is" for country in ("France", "Italy", "Japan", "Peru")]
    answers, num_retracted = [], []
    for num_pages in (64, 6):
        with LLM(real_model, max_seq_len=65, page_size=16, num_pages=num_pages) as llm:
            llm.scheduler.trace = trace = Trace()
            answers.append([one.token_ids for one in llm.generate(prompts, up_to(40))])
            num_retracted.append(sum(e["event"] == "retract" for e in trace.events))
    assert answers[0] == answers[1]
    assert num_retracted[0] == 0 < num_retracted[1]
