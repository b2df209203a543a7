"""Chapter 6: memory is given out in pages, by need, and where a page lies changes no token.

From small to large: the free list, the two tables, pages for requests, the pool, the scheduler on
a fake engine (which checks at every pass that a request reads where its pages are, and what is its
own), then the engine and `LLM`. The oracle computes everything again for each token: transformers
without its cache.
"""

import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from fake_engine import FakeEngine, Scheduler, failing_step, fake_engine, make_request
from interrupts import interrupt_at
from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.engine import Engine, ForwardOutput
from minisgl.kvcache.allocator import PageAllocator
from minisgl.kvcache.manager import CacheManager
from minisgl.kvcache.pool import PagedKVPool
from minisgl.llm import LLM
from minisgl.scheduler.request import Request
from minisgl.scheduler.table import TableManager
from recomputing import recomputed
from tiny_models import ARCHITECTURES, make_tiny_model

TinyModel = Callable[[str], Path]

TEXTS = ["The engine stores keys and values", "请求等待,然后被调度", "def forward(self"]
VOCAB_SIZE = 384

page_sizes = pytest.mark.parametrize("page_size", [1, 3, 4, 16])


@pytest.fixture(params=ARCHITECTURES)
def arch(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny models are slower with two threads than with one, and far slower on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def some_ids(seed: int, length: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCAB_SIZE, (length,), generator=generator).tolist()


def greedy(max_tokens: int) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, ignore_eos=True)


# --- Which pages are free: minisgl/kvcache/allocator.py -----------------------------------------


def pages_left(num_pages: int, free: set[int]) -> PageAllocator:
    """An allocator in which exactly `free` are free."""
    allocator = PageAllocator(num_pages)
    allocator.allocate(num_pages)
    allocator.free(sorted(free))
    return allocator


@pytest.mark.parametrize("num_pages", [1, 2, 7, 64])
def test_a_page_is_free_or_was_given_to_one_owner(num_pages: int) -> None:
    rng = random.Random(num_pages)
    allocator, free = PageAllocator(num_pages), set(range(num_pages))
    owners: list[list[int]] = []
    for _ in range(500):
        if owners and rng.random() < 0.5:
            pages = owners.pop(rng.randrange(len(owners)))
            rng.shuffle(pages)
            back, kept = pages[: len(pages) // 2 + 1], pages[len(pages) // 2 + 1 :]
            allocator.free(back)
            free |= set(back)
            owners += [kept] if kept else []
        else:
            count = rng.randint(0, len(free))
            pages = allocator.allocate(count)
            assert len(pages) == len(set(pages)) == count
            assert free.issuperset(pages)
            free -= set(pages)
            owners += [pages] if pages else []
        assert allocator.free_pages() == sorted(free)
        assert allocator.num_free == len(free)


@pytest.mark.parametrize("page", [0, 3, 4, 7])
def test_freeing_a_page_twice_names_it(page: int) -> None:
    allocator = pages_left(9, {0, 3, 4, 5, 7})
    with pytest.raises(AssertionError, match=f"page {page} is free already"):
        allocator.free([page])
    assert allocator.free_pages() == [0, 3, 4, 5, 7]


def test_more_pages_than_are_free_are_never_given() -> None:
    allocator = pages_left(9, {2, 5})
    with pytest.raises(AssertionError, match="3 pages asked for, 2 are free"):
        allocator.allocate(3)
    assert sorted(allocator.allocate(2)) == [2, 5]


# --- The two tables: minisgl/scheduler/table.py -------------------------------------------------


def make_table(num_rows: int) -> TableManager:
    return TableManager(torch.zeros(num_rows, 10, dtype=torch.int32))


def make_req(row: int, handle: Any = None, num_tokens: int = 1) -> Req:
    """A request with places for `num_tokens` tokens; the one after them needs none."""
    prompt = torch.tensor([100 + row], dtype=torch.int32)
    return Req(prompt, row, 0, num_tokens, row, SamplingParams(), handle)


def test_a_row_belongs_to_one_request_until_it_is_freed() -> None:
    table = make_table(4)
    rows = [table.allocate() for _ in range(4)]
    assert sorted(rows) == [0, 1, 2, 3]
    assert table.num_free_rows == 0
    table.check_invariants([make_req(row) for row in rows])
    table.free(rows[2])
    assert table.num_free_rows == 1
    assert table.allocate() == rows[2]
    table.reset()
    assert table.num_free_rows == 4
    table.check_invariants([])


def test_freeing_a_row_twice_names_it() -> None:
    table = make_table(4)
    row = table.allocate()
    table.free(row)
    with pytest.raises(AssertionError, match=f"row {row} is free already"):
        table.free(row)


def test_a_row_that_was_lost_or_has_two_owners_is_found() -> None:
    table = make_table(3)
    req = make_req(table.allocate())
    table.check_invariants([req])
    for running in ([], [req, req]):
        with pytest.raises(AssertionError, match="rows with 0 or 2 owners"):
            table.check_invariants(running)


def test_the_token_pool_is_a_twin_of_the_page_table() -> None:
    table = make_table(3)
    assert table.token_pool.shape == table.page_table.shape
    assert table.token_pool.dtype == table.page_table.dtype == torch.int32
    assert table.token_pool.data_ptr() != table.page_table.data_ptr()


# --- Pages for requests: minisgl/kvcache/manager.py ---------------------------------------------


class Pages:
    """A cache manager with its table."""

    def __init__(self, num_pages: int, page_size: int, max_seq_len: int = 50) -> None:
        self.table = torch.full((16, max_seq_len), -1, dtype=torch.int32)
        self.manager = CacheManager(num_pages, page_size, self.table)
        self.page_size = page_size

    def reserve(self, row: int, num_tokens: int) -> Req | None:
        asked: list[Any] = [row, num_tokens]
        if "input_ids" in inspect.signature(self.manager.reserve).parameters:  # from chapter 8 on
            asked.insert(1, [100 + row])
        handle = self.manager.reserve(*asked)
        return None if handle is None else make_req(row, handle, num_tokens)

    def must_reserve(self, row: int, num_tokens: int) -> Req:
        req = self.reserve(row, num_tokens)
        assert req is not None
        return req

    def check_mirror(self, req: Req) -> None:
        """The row says where each token of the pages in the handle lies, in order."""
        size, pages = self.page_size, req.cache_handle.pages
        locations = [page * size + offset for page in pages for offset in range(size)]
        row = self.table[req.table_idx].tolist()
        length = min(len(locations), len(row))
        assert row[:length] == locations[:length]
        assert row[length:] == [-1] * (len(row) - length)


@page_sizes
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_a_request_gets_the_pages_that_its_tokens_need(page_size: int, beside: int) -> None:
    pages = Pages(10, page_size)
    num_tokens = 2 * page_size + beside
    first, second = pages.must_reserve(3, num_tokens), pages.must_reserve(5, 1)
    assert len(first.cache_handle.pages) == -(-num_tokens // page_size)
    assert len(second.cache_handle.pages) == 1
    for req in (first, second):
        pages.check_mirror(req)
    pages.manager.check_invariants([first, second])


def test_a_row_that_ends_within_a_page_holds_the_locations_that_fit() -> None:
    pages = Pages(4, 16, max_seq_len=21)
    pages.check_mirror(pages.must_reserve(0, 20))


def test_a_request_that_does_not_fit_gets_nothing_and_leaves_nothing() -> None:
    pages = Pages(4, 4)
    first = pages.must_reserve(0, 8)
    before = pages.table.clone()
    assert pages.reserve(1, 9) is None
    assert torch.equal(pages.table, before)
    pages.manager.check_invariants([first])
    second = pages.must_reserve(1, 8)
    pages.manager.free(first)
    pages.manager.check_invariants([second])
    assert pages.reserve(2, 8) is not None


def test_after_a_reset_every_page_is_free() -> None:
    pages = Pages(4, 4)
    pages.must_reserve(0, 7)
    pages.manager.reset()
    pages.manager.check_invariants([])
    assert len(pages.must_reserve(0, 16).cache_handle.pages) == 4


def test_a_page_that_was_lost_or_has_two_owners_is_found() -> None:
    pages = Pages(4, 4)
    req = pages.must_reserve(0, 4)
    with pytest.raises(AssertionError, match="pages with 0 or 2 owners"):
        pages.manager.check_invariants([])
    with pytest.raises(AssertionError, match="pages with 0 or 2 owners"):
        pages.manager.check_invariants([req, make_req(1, req.cache_handle)])
    pages.manager.check_invariants([req])


@page_sizes
def test_the_page_table_is_written_and_never_read_back(page_size: int) -> None:
    """Whatever becomes of it, the lists on the host say who has which page."""
    pages, rng = Pages(24, page_size), random.Random(page_size)
    running: dict[int, Req] = {}
    for _ in range(300):
        row = rng.randrange(16)
        if row in running:
            pages.manager.free(running.pop(row))
        else:
            pages.table[row] = -1
            req = pages.reserve(row, rng.randint(1, 40))
            if req is not None:
                pages.check_mirror(req)
                running[row] = req
                pages.table[row] = 10**6
        pages.manager.check_invariants(list(running.values()))
    assert len(running) > 1


# --- Their memory: minisgl/kvcache/pool.py ------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_pool_takes_the_memory_of_its_pages_and_no_more(dtype: torch.dtype) -> None:
    pool = PagedKVPool(
        num_pages=50,
        page_size=3,
        num_layers=4,
        num_kv_heads=2,
        head_dim=8,
        dtype=dtype,
        device=torch.device("cpu"),
    )
    assert pool.num_bytes == 50 * 3 * 2 * 4 * 2 * 8 * dtype.itemsize
    for layer in range(4):
        for side in (pool.k_cache(layer), pool.v_cache(layer)):
            assert (side.shape, side.dtype) == ((150, 2, 8), dtype)
            side.fill_(0)
    out_loc = torch.tensor([149, 0, 71], dtype=torch.int32)
    k, v = torch.randn(2, 3, 2, 8).to(dtype)
    pool.store_kv(k, v, out_loc, 2)
    assert torch.equal(pool.k_cache(2)[out_loc], k)
    assert torch.equal(pool.v_cache(2)[out_loc], v)
    for layer in range(4):
        for side in (pool.k_cache(layer), pool.v_cache(layer)):
            assert side.any(dim=(1, 2)).sum() == (3 if layer == 2 else 0)


# --- The scheduler, on a fake engine: minisgl/scheduler/static.py -------------------------------


def make_scheduler(**options: Any) -> Any:
    return Scheduler(fake_engine(**{"max_seq_len": 40} | options), frozenset())


def run(scheduler: Any, *requests: Request) -> None:
    """Step until all have ended; each must have the answer that it gets alone.

    After every step each row and each page has one owner.
    """
    for _ in range(1000):  # a scheduler that gets nowhere must fail, and not run for ever
        if all(request.finish_reason for request in requests):
            break
        scheduler.step()
        scheduler.check_invariants()
    engine: Any = scheduler.engine
    for request in requests:
        assert request.token_ids == engine.answer(request.input_ids, request.output_len)


def num_begun(requests: Sequence[Request]) -> int:
    return sum(bool(request.token_ids) for request in requests)


@page_sizes
@pytest.mark.parametrize("num_tokens", [40, 100])
def test_every_request_gets_the_tokens_that_it_gets_alone_from_pages(
    num_tokens: int, page_size: int
) -> None:
    """In a pool that holds one of the longest, and in one that holds several."""
    rng = random.Random(num_tokens + page_size)
    num_pages = -(-num_tokens // page_size)
    scheduler = make_scheduler(page_size=page_size, num_pages=num_pages, max_running_reqs=5)
    requests = []
    for uid in range(60):
        prompt = [rng.randrange(3, 6) for _ in range(rng.randint(1, 26))]
        requests.append(make_request(uid, prompt, rng.randint(1, 14)))
        scheduler.add(requests[-1])
        for _ in range(rng.randrange(4)):
            scheduler.step()
            scheduler.check_invariants()
    run(scheduler, *requests)


def test_many_short_requests_run_in_the_memory_of_four_long_ones() -> None:
    scheduler = make_scheduler(max_seq_len=80, page_size=4)  # by default for 4 * 80 tokens
    requests = [make_request(uid, some_ids(uid, 11), 6) for uid in range(25)]  # 16 places each
    for request in requests:
        scheduler.add(request)
    scheduler.step()
    assert num_begun(requests) == 20
    run(scheduler, *requests)


def test_no_more_requests_run_than_the_tables_have_rows() -> None:
    scheduler = make_scheduler(max_running_reqs=3, page_size=1)
    requests = [make_request(uid, [5 + uid], 4) for uid in range(7)]
    for request in requests:
        scheduler.add(request)
    scheduler.step()
    assert num_begun(requests) == 3
    run(scheduler, *requests)


def test_who_does_not_fit_waits_and_nobody_overtakes_it() -> None:
    scheduler = make_scheduler(page_size=4, num_pages=10)
    lengths = [(10, 8), (27, 3), (1, 1)]  # 5, 8 and 1 pages
    requests = [make_request(uid, some_ids(uid, n), m) for uid, (n, m) in enumerate(lengths)]
    for request in requests:
        scheduler.add(request)
    scheduler.step()
    assert [len(request.token_ids) for request in requests] == [1, 0, 0]
    run(scheduler, requests[0])
    assert num_begun(requests) == 1
    scheduler.step()
    assert [len(request.token_ids) for request in requests] == [8, 1, 1]
    run(scheduler, *requests)


@page_sizes
def test_the_last_token_gets_no_place(page_size: int) -> None:
    """It is only ever an output: a pool of n tokens serves a text of n + 1."""
    scheduler = make_scheduler(page_size=page_size, num_pages=2, max_seq_len=2 * page_size + 1)
    for uid, prompt_len in enumerate((1, page_size, 2 * page_size)):
        prompt = some_ids(uid, prompt_len)
        request = make_request(uid, prompt, 2 * page_size + 1 - prompt_len)
        scheduler.add(request)
        run(scheduler, request)


def test_the_token_pool_holds_the_prompt_and_every_sampled_token() -> None:
    scheduler = make_scheduler(max_seq_len=24, page_size=3)
    request = make_request(0, some_ids(0, 10), 14)  # the last token takes the last column
    scheduler.add(request)
    run(scheduler, request)
    pool = scheduler._table.token_pool
    [row] = pool.any(dim=1).nonzero().flatten().tolist()
    assert pool[row].tolist() == request.input_ids + request.token_ids


@pytest.mark.parametrize("num_steps", [0, 1, 4])
def test_pages_and_rows_of_the_aborted_come_back(num_steps: int) -> None:
    scheduler = make_scheduler(page_size=4, num_pages=10, max_running_reqs=2)
    for uid in range(6):
        scheduler.add(make_request(uid, some_ids(uid, 9), 12))  # 5 pages
    for _ in range(num_steps):
        scheduler.step()
    for uid in range(6):
        scheduler.abort(uid)
    large = [make_request(uid, some_ids(uid, 10), 11) for uid in (10, 11)]
    for request in large:
        scheduler.add(request)
    scheduler.step()
    assert num_begun(large) == 2
    run(scheduler, *large)


class Failure(Exception):
    """What no code of the engine raises."""


@pytest.mark.parametrize("num_tokens", [0, 1, 5])
def test_pages_and_rows_of_a_batch_that_failed_come_back(
    num_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = make_scheduler(page_size=4, num_pages=10, max_running_reqs=2)
    lost = [make_request(uid, some_ids(uid, 9), 12) for uid in range(2)]
    for request in lost:
        scheduler.add(request)
    for _ in range(num_tokens):
        scheduler.step()

    def fail(batch: Batch) -> ForwardOutput:
        raise Failure

    with monkeypatch.context() as patch:
        patch.setattr(scheduler.engine, "forward_batch", fail)
        with failing_step(Failure, *lost):
            scheduler.step()
    scheduler.check_invariants()
    assert [request.finish_reason for request in lost] == ["error", "error"]
    whole = make_request(9, some_ids(9, 30), 10)  # it needs all pages
    scheduler.add(whole)
    run(scheduler, whole)


def test_after_an_interrupt_at_any_line_every_page_is_usable() -> None:
    scheduler = make_scheduler(page_size=2, num_pages=8, max_running_reqs=3)
    place: list[str] = ["not yet"]
    number, rng = 0, random.Random(0)
    while place:
        number += rng.randint(1, 3)
        uid = 10 * number
        requests = [make_request(uid + n, [5 + n] * 4, 3) for n in range(3)]  # 3 pages each
        try:
            with interrupt_at(number) as place:
                for request in requests:
                    scheduler.add(request)
                scheduler.step()
                scheduler.abort(requests[0].uid)
                scheduler.step()
                scheduler.step()
        except KeyboardInterrupt:
            assert place
        for request in requests:  # as their caller does, however it has ended
            scheduler.abort(request.uid)
        whole = make_request(uid + 4, [9] * 7, 10)  # it needs all pages
        scheduler.add(whole)
        scheduler.step()
        assert len(whole.token_ids) == 1, place
        run(scheduler, whole)
    assert number > 100


# --- The engine: minisgl/engine/ and minisgl/layers/attention.py --------------------------------


def answers_of(llm: LLM, prompts: list[list[int]], max_tokens: int) -> list[list[int]]:
    return [output.token_ids for output in llm.generate(prompts, greedy(max_tokens))]


class Watch:
    """Remembers where each token's KV goes, as the batches say it and the page table does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.places: dict[int, list[int]] = {}  # uid -> the locations of its tokens, in order
        owners: dict[int, int] = {}  # page -> uid, of those who are not done
        forward = Engine.forward_batch

        def forward_batch(engine: Engine, batch: Batch) -> ForwardOutput:
            out_loc = batch.out_loc.tolist()
            for req in batch.reqs:
                new, out_loc = out_loc[: req.extend_len], out_loc[req.extend_len :]
                row = engine.ctx.page_table[req.table_idx, : req.device_len].tolist()
                assert row[req.cached_len :] == new
                assert row[: req.cached_len] == self.places.get(req.uid, row[: req.cached_len])
                self.places[req.uid] = row
                for page in {location // engine.config.page_size for location in row}:
                    assert owners.setdefault(page, req.uid) == req.uid
            output = forward(engine, batch)
            done = {req.uid for req in batch.reqs if req.device_len == req.max_device_len - 1}
            for page in [page for page, uid in owners.items() if uid in done]:
                del owners[page]
            return output

        monkeypatch.setattr(Engine, "forward_batch", forward_batch)


def scatter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give out pages in random order."""
    allocate, rng = PageAllocator.allocate, random.Random(0)

    def any_pages(allocator: PageAllocator, count: int, **_: Any) -> list[int]:
        pages = allocate(allocator, allocator.num_free)
        rng.shuffle(pages)
        allocator.free(pages[count:])
        return pages[:count]

    monkeypatch.setattr(PageAllocator, "allocate", any_pages)


@page_sizes
def test_tokens_lie_in_pages_of_one_owner_in_order(
    page_size: int, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = LLM(tiny_model("llama"), page_size=page_size, max_seq_len=64)
    watch = Watch(monkeypatch)
    lengths = [(1, 1), (5, 3), (page_size, 5), (2 * page_size - 1, 1), (20, 30)]
    prompts = [some_ids(n, prompt_len) for n, (prompt_len, _) in enumerate(lengths)]
    llm.generate(prompts, [greedy(output_len) for _, output_len in lengths])
    for places, (prompt_len, output_len) in zip(watch.places.values(), lengths, strict=True):
        assert len(set(places)) == len(places) == prompt_len + output_len - 1
        pages = [location // page_size for location in places]
        for position, location in enumerate(places):
            assert location % page_size == position % page_size
            assert pages[position] == pages[position - position % page_size]
            assert 0 <= pages[position] < llm.engine.num_pages
        # Used beyond what is needed: less than a page.
        assert len(set(pages)) * page_size - len(places) < page_size


@page_sizes
def test_scattered_pages_change_no_token(
    arch: str, page_size: int, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    scatter(monkeypatch)
    watch = Watch(monkeypatch)
    llm = LLM(tiny_model(arch), page_size=page_size, max_seq_len=128)
    prompts = [some_ids(0, 1), some_ids(1, 16), some_ids(2, 47)]
    assert answers_of(llm, prompts, 18) == recomputed(tiny_model(arch), prompts, 18)
    longest = max(watch.places.values(), key=len)
    assert longest != list(range(longest[0], longest[0] + len(longest)))


@page_sizes
def test_by_default_there_are_pages_for_four_of_the_longest(
    page_size: int, tiny_model: TinyModel
) -> None:
    engine = LLM(tiny_model("llama"), page_size=page_size, max_seq_len=50).engine
    assert engine.max_seq_len == 50
    assert 4 * 50 <= engine.num_pages * page_size < 4 * 50 + page_size
    assert len(engine.ctx.kv_cache.k_cache(0)) == engine.num_pages * page_size


def test_the_longest_text_is_bounded_by_the_pool_and_by_the_context(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    folder = tiny_model("llama")
    assert LLM(folder, page_size=4, num_pages=5).engine.max_seq_len == 21
    assert LLM(folder, page_size=4, num_pages=5, max_seq_len=21).engine.max_seq_len == 21
    assert LLM(folder, page_size=4, num_pages=5, max_seq_len=9).engine.max_seq_len == 9
    short = make_tiny_model("llama", tmp_path, max_position_embeddings=20)
    assert LLM(short, page_size=4, num_pages=50).engine.max_seq_len == 20


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"page_size": 0}, "page_size must be an integer ≥ 1 .*, got 0"),
        ({"page_size": 2.0}, "page_size must be an integer ≥ 1 .*, got 2.0"),
        ({"page_size": True}, "page_size must be an integer ≥ 1 .*, got True"),
        ({"page_size": 10**12}, "page_size must be an integer ≥ 1 and ≤ 2147483647, got 10000"),
        ({"num_pages": 0}, "num_pages must be an integer ≥ 1 .*, got 0"),
        ({"num_pages": 10**12}, "num_pages must be an integer ≥ 1 and ≤ 2147483647, got 10000"),
        ({"num_pages": 2**31 - 1, "page_size": 2**31 - 1}, "pages of 2147483647 tokens.* must fit"),
        ({"num_pages": 10**9, "page_size": 10**6}, "pages of 1000000 tokens.* must fit in memory"),
        (
            {"max_seq_len": 101, "page_size": 3, "num_pages": 33},
            r"max_seq_len must be at most 100 .*\(1024\) and 33 pages of 3 .* got 101",
        ),
        ({"max_seq_len": 2000}, r"max_seq_len must be at most 1024 .* got 2000"),
    ],
    ids=str,
)
def test_impossible_sizes_are_refused_with_rule_value_and_remedy(
    options: dict[str, Any], rule: str, tiny_model: TinyModel
) -> None:
    with pytest.raises(ValueError, match=rule):
        LLM(tiny_model("llama"), **options)


# --- Whole answers ------------------------------------------------------------------------------


@page_sizes
def test_tokens_equal_those_of_recomputing_everything(
    arch: str, page_size: int, tiny_model: TinyModel
) -> None:
    llm = LLM(tiny_model(arch), page_size=page_size)
    texts = [llm.tokenizer(text)["input_ids"] for text in TEXTS]
    prompts = [*texts, some_ids(0, 1), some_ids(1, 16), some_ids(2, 47)]
    assert answers_of(llm, prompts, 18) == recomputed(tiny_model(arch), prompts, 18)


@pytest.mark.parametrize("seed", range(2))
def test_a_pool_that_is_used_again_and_again_gives_the_same_tokens(
    seed: int, tiny_model: TinyModel
) -> None:
    folder, rng = tiny_model("mistral"), random.Random(seed)
    llm = LLM(folder, page_size=3, num_pages=20)
    prompts = [some_ids(100 * seed + n, rng.randint(1, 30)) for n in range(12)]
    expected = recomputed(folder, prompts, 8)
    for _ in range(2):
        assert answers_of(llm, prompts, 8) == expected
        rng.shuffle(order := list(range(12)))
        prompts, expected = [prompts[n] for n in order], [expected[n] for n in order]


@pytest.mark.slow
@pytest.mark.parametrize("page_size", [3, 16])
def test_the_real_model_gives_the_same_tokens_from_pages(real_model: Path, page_size: int) -> None:
    llm = LLM(real_model, page_size=page_size, max_seq_len=256)
    texts = ["请解释什么是 KV Cache？", "The capital of France is"]
    prompts = [llm.tokenizer(text)["input_ids"] for text in texts]
    assert answers_of(llm, prompts, 8) == recomputed(real_model, prompts, 8)


def test_what_can_never_fit_is_refused_at_once(tiny_model: TinyModel) -> None:
    folder = tiny_model("llama")
    llm = LLM(folder, page_size=4, num_pages=5)
    for length in (21, 22, 1000):
        rule = f"must be shorter than 21 tokens, this one has {length}: shorten it"
        with pytest.raises(ValueError, match=rule):
            llm.stream(some_ids(1, length))
        with pytest.raises(ValueError, match=rule):
            llm.generate([some_ids(1, 3), some_ids(1, length)], greedy(2))
    [longest] = llm.generate(some_ids(2, 20))
    assert (len(longest.token_ids), longest.finish_reason) == (1, "length")


def test_a_large_request_beside_an_open_stream_waits_for_it(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minisgl.llm.llm.Engine", FakeEngine)
    llm = LLM(tiny_model("qwen2"), page_size=4, num_pages=16)
    engine: Any = llm.engine
    small, large = some_ids(0, 10), some_ids(1, 50)
    stream = llm.stream(small, greedy(10))
    received = next(stream).token_ids
    assert answers_of(llm, [large], 10) == [engine.answer(large, 10)]
    received += [token for piece in stream for token in piece.token_ids]
    assert received == engine.answer(small, 10)


@pytest.mark.parametrize(("page_size", "prompt_len"), [(1, 1), (2, 1), (16, 10), (16, 16)])
def test_a_pool_of_one_page_serves_what_fits_in_it(
    page_size: int, prompt_len: int, tiny_model: TinyModel
) -> None:
    folder = tiny_model("llama")
    llm = LLM(folder, page_size=page_size, num_pages=1)
    for n in range(3):
        prompt = some_ids(n, prompt_len)
        [output] = llm.generate(prompt, greedy(100))
        assert output.finish_reason == "length"
        assert output.token_ids == recomputed(folder, [prompt], page_size + 1 - prompt_len)[0]
