"""Chapter 7: requests of any length share a batch, and each gets the answer it would get alone.

The oracle of the backend is attention written out token by token. That of `LLM` is `LLM` itself
with one request at a time.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from device_reads import DEVICE, DeviceReads
from fake_engine import Scheduler, budget, fake_engine, make_request
from minisgl.attention.base import BaseAttnBackend
from minisgl.attention.torch_backend import TorchAttnBackend
from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.engine import ForwardOutput
from minisgl.kvcache import BaseCacheHandle
from minisgl.kvcache.allocator import PageAllocator
from minisgl.kvcache.pool import PagedKVPool
from minisgl.llm import LLM
from minisgl.scheduler.table import TableManager

LAYERS, QO_HEADS, KV_HEADS, HEAD_DIM = 2, 6, 2, 8
NUM_TOKENS, NUM_ROWS, MAX_SEQ_LEN = 480, 8, 64  # of the pool, of the page table

# Of each request: how many tokens are cached, and how many are new.
PREFILL, PREFIX_HIT, DECODE = (0, 7), (9, 5), (12, 1)
Lengths = tuple[int, int]
TinyModel = Callable[[str], Path]
NEVER = frozenset[int]()  # no token ends a request

page_sizes = pytest.mark.parametrize("page_size", [1, 3, 4, 16])
layouts = pytest.mark.parametrize("layout", ["run", "scattered"])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# --- which pages are free -------------------------------------------------------------------------


def pages_left(num_pages: int, free: set[int]) -> PageAllocator:
    """An allocator in which exactly `free` are free."""
    allocator = PageAllocator(num_pages)
    allocator.allocate(num_pages)
    allocator.free(sorted(free))
    return allocator


def runs_of(free: set[int]) -> list[list[int]]:
    """The free pages as the longest runs there are, ascending."""
    runs: list[list[int]] = []
    for page in sorted(free):
        if runs and runs[-1][-1] == page - 1:
            runs[-1].append(page)
        else:
            runs.append([page])
    return runs


def expected_pages(free: set[int], count: int) -> list[int]:
    """The rule in its naive form: the shortest run that is enough, else the longest, and again."""
    pages: list[int] = []
    while count > 0:
        runs = runs_of(free - set(pages))
        enough = [run for run in runs if len(run) >= count]
        best = min(enough, key=len) if enough else max(runs, key=len)
        pages += best[:count]
        count -= len(best[:count])
    return pages


def test_the_shortest_run_that_is_long_enough_is_cut() -> None:
    free = {0, 1, 2, 3, 4, 10, 11, 12, 20, 21}
    assert pages_left(30, free).allocate(3) == [10, 11, 12]
    assert pages_left(30, free).allocate(2) == [20, 21]
    assert pages_left(30, free).allocate(4) == [0, 1, 2, 3]
    assert pages_left(30, free).allocate(1) == [20]


def test_where_no_run_is_long_enough_as_few_as_possible_are_used() -> None:
    free = {0, 2, 3, 10, 11, 12, 13, 20, 21, 22}
    assert pages_left(30, free).allocate(6) == [10, 11, 12, 13, 2, 3]
    assert pages_left(30, free).allocate(10) == [10, 11, 12, 13, 20, 21, 22, 2, 3, 0]


@pytest.mark.parametrize("seed", range(5))
def test_pages_freed_in_any_order_are_one_run_again(seed: int) -> None:
    allocator = PageAllocator(40)
    pages = allocator.allocate(40)
    random.Random(seed).shuffle(pages)
    for page in pages:
        allocator.free([page])
    assert allocator.allocate(40) == list(range(40))


@pytest.mark.parametrize("page", [0, 3, 4, 5, 7])
def test_freeing_a_page_of_a_run_twice_names_it(page: int) -> None:
    allocator = pages_left(9, {0, 3, 4, 5, 7})
    with pytest.raises(AssertionError, match=rf"\b{page}\b"):
        allocator.free([page])
    assert allocator.free_pages() == [0, 3, 4, 5, 7]


@pytest.mark.parametrize("num_pages", [1, 2, 7, 64])
@pytest.mark.parametrize("seed", range(3))
def test_the_allocator_does_what_a_plain_set_of_pages_would(num_pages: int, seed: int) -> None:
    rng = random.Random(seed)
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
            assert pages == expected_pages(free, count)
            free -= set(pages)
            owners += [pages] if pages else []
        assert allocator.free_pages() == sorted(free)
        assert allocator.num_free == len(free)


def handle_of(pages: list[int]) -> BaseCacheHandle:
    """A handle; from chapter 8 on it also says how many tokens are a prefix that others read."""
    handle: Any = BaseCacheHandle
    later = {"cached_len"} & {field.name for field in fields(BaseCacheHandle)}
    return handle(pages, **dict.fromkeys(later, 0))


@pytest.mark.parametrize(
    ("pages", "is_run"),
    [
        ([5], True),
        ([5, 6, 7], True),
        ([0, 1], True),
        ([6, 5], False),
        ([5, 7], False),
        ([5, 6, 8], False),
        ([4, 6, 7], False),
        ([5, 5], False),
    ],
)
def test_pages_are_a_run_where_each_follows_the_one_before(pages: list[int], is_run: bool) -> None:
    assert handle_of(pages).is_run == is_run


# --- a pool with requests -------------------------------------------------------------------------


@dataclass
class Sequence:
    """A request with its whole text's queries, keys and values: [layer, position, head, dim]."""

    req: Req
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor

    @property
    def new(self) -> slice:
        return slice(self.req.cached_len, self.req.device_len)


class Setup:
    """A pool, a page table, a backend, and requests whose past is in the pool already."""

    def __init__(self, page_size: int = 4, seed: int = 0) -> None:
        self.random = torch.Generator().manual_seed(seed)
        self.page_size = page_size
        self.pool = PagedKVPool(
            num_pages=NUM_TOKENS // page_size,
            page_size=page_size,
            num_layers=LAYERS,
            num_kv_heads=KV_HEADS,
            head_dim=HEAD_DIM,
            dtype=torch.float32,
            device=torch.device("cpu"),
        )
        for layer_id in range(LAYERS):  # what nobody wrote must never count
            self.pool.k_cache(layer_id).fill_(torch.nan)
            self.pool.v_cache(layer_id).fill_(torch.nan)
        self.page_table = torch.zeros(NUM_ROWS, MAX_SEQ_LEN, dtype=torch.int32)
        self.backend = TorchAttnBackend(self.pool, self.page_table, page_size)
        self.sequences: list[Sequence] = []

    def add(
        self, lengths: Lengths, layout: str = "run", pages: list[int] | None = None
    ) -> Sequence:
        """A request in the next row; its pages are in an area of its own, or those named."""
        row, (cached_len, num_new) = len(self.sequences), lengths
        length = cached_len + num_new
        first = row * (NUM_TOKENS // self.page_size // NUM_ROWS)
        needed = range(first, first + -(-length // self.page_size))
        # Reversed, every page is there, and none follows the one before it.
        own = pages or list(needed if layout == "run" else reversed(needed))
        starts = torch.tensor(own)[:, None] * self.page_size + torch.arange(self.page_size)
        self.page_table[row, : starts.numel()] = starts.flatten()
        ids, handle = torch.arange(length).int(), handle_of(own)
        req = Req(ids, row, cached_len, 4, row, SamplingParams(), handle)
        shapes = [(LAYERS, length, heads, HEAD_DIM) for heads in (QO_HEADS, KV_HEADS, KV_HEADS)]
        q, k, v = (torch.randn(shape, generator=self.random) for shape in shapes)
        sequence = Sequence(req, q, k, v)
        self.remember(sequence)
        self.sequences.append(sequence)
        return sequence

    def remember(self, sequence: Sequence) -> None:
        """Put the past of a request into the pool."""
        past = slice(0, sequence.req.cached_len)
        places = self.page_table[sequence.req.table_idx, past]
        for layer_id in range(LAYERS):
            k, v = sequence.k[layer_id, past], sequence.v[layer_id, past]
            self.pool.store_kv(k, v, places, layer_id)

    def prepare(self, sequences: list[Sequence]) -> Batch:
        reqs = [one.req for one in sequences]
        is_decode = all(req.extend_len == 1 for req in reqs)
        batch = Batch(reqs, "decode" if is_decode else "prefill")
        batch.out_loc = torch.cat(
            [self.page_table[one.req.table_idx, one.new] for one in sequences]
        )
        self.backend.prepare_metadata(batch)
        return batch

    def compute(self, sequences: list[Sequence], layer_id: int = 0) -> list[torch.Tensor]:
        """What the backend says, cut into the requests' shares."""
        return self.compute_prepared(self.prepare(sequences), sequences, layer_id)

    def compute_prepared(
        self, batch: Batch, sequences: list[Sequence], layer_id: int
    ) -> list[torch.Tensor]:
        q, k, v = (
            torch.cat([getattr(one, name)[layer_id, one.new] for one in sequences])
            for name in ("q", "k", "v")
        )
        out = self.backend.forward(q, k, v, layer_id, batch)
        assert out.shape == q.shape
        return list(out.split([one.req.extend_len for one in sequences]))


def dense(sequence: Sequence, layer_id: int = 0) -> torch.Tensor:
    """Attention as it is defined, one token and one head at a time: [num_new, heads, dim]."""
    q, k, v = (part[layer_id].double() for part in (sequence.q, sequence.k, sequence.v))
    rows = []
    for position in range(len(q))[sequence.new]:
        heads = []
        for head in range(QO_HEADS):
            shared = head // (QO_HEADS // KV_HEADS)
            seen_k, seen_v = k[: position + 1, shared], v[: position + 1, shared]
            weights = (seen_k @ q[position, head] / HEAD_DIM**0.5).softmax(0)
            heads.append(weights @ seen_v)
        rows.append(torch.stack(heads))
    return torch.stack(rows).float()


def assert_dense(actual: torch.Tensor, sequence: Sequence, layer_id: int = 0) -> None:
    torch.testing.assert_close(actual, dense(sequence, layer_id), rtol=0, atol=1e-5)


# --- boundaries -----------------------------------------------------------------------------------


def test_cu_seqlens_are_running_sums_of_the_new_and_of_all_tokens() -> None:
    setup = Setup()
    metadata = setup.prepare(
        [setup.add(one) for one in (PREFILL, PREFIX_HIT, DECODE)]
    ).attn_metadata
    assert metadata.cu_seqlens_q.tolist() == [0, 7, 12, 13]
    assert metadata.cu_seqlens_k.tolist() == [0, 7, 21, 34]
    assert metadata.cu_seqlens_q.dtype == metadata.cu_seqlens_k.dtype == torch.int32


# --- the dense answer -----------------------------------------------------------------------------


@layouts
@pytest.mark.parametrize("lengths", [PREFILL, PREFIX_HIT, DECODE, (0, 1), (1, 1), (1, 2), (40, 24)])
def test_a_request_alone_equals_the_dense_answer(lengths: Lengths, layout: str) -> None:
    setup = Setup()
    sequence = setup.add(lengths, layout)
    assert_dense(setup.compute([sequence])[0], sequence)


@layouts
@page_sizes
def test_a_prefill_a_prefix_hit_and_a_decode_in_one_batch_equal_the_dense_answer(
    page_size: int, layout: str
) -> None:
    setup = Setup(page_size)
    sequences = [setup.add(one, layout) for one in (PREFILL, PREFIX_HIT, DECODE)]
    for out, sequence in zip(setup.compute(sequences), sequences, strict=True):
        assert_dense(out, sequence)


@pytest.mark.parametrize("seed", range(8))
def test_ragged_batches_equal_the_dense_answer(seed: int) -> None:
    setup = Setup(page_size=[1, 3, 4, 16][seed % 4], seed=seed)
    drawn = torch.randint(0, 20, (NUM_ROWS, 2), generator=setup.random).tolist()
    sequences = [
        setup.add((cached, 1 + new), "run" if cached % 2 else "scattered") for cached, new in drawn
    ]
    batch = setup.prepare(sequences)
    for layer_id in range(LAYERS):  # one preparation serves every layer
        shares = setup.compute_prepared(batch, sequences, layer_id)
        for out, sequence in zip(shares, sequences, strict=True):
            assert_dense(out, sequence, layer_id)


@layouts
def test_a_request_is_computed_to_the_last_bit_as_if_it_were_alone(layout: str) -> None:
    setup = Setup()
    sequences = [setup.add(one, layout) for one in (DECODE, PREFILL, PREFIX_HIT, (3, 30))]
    together = setup.compute(sequences)
    for out, sequence in zip(together, sequences, strict=True):
        assert torch.equal(out, setup.compute([sequence])[0])


@layouts
def test_a_new_token_sees_its_past_and_nothing_after_it(layout: str) -> None:
    """The mask of a prefix hit is aligned with the last key: bottom right."""
    cached_len, num_new = PREFIX_HIT
    for changed in range(cached_len + num_new):
        setup = Setup()
        sequence = setup.add(PREFIX_HIT, layout)
        [before] = setup.compute([sequence])
        sequence.k[:, changed] += 1
        sequence.v[:, changed] += 1
        setup.remember(sequence)
        [after] = setup.compute([sequence])
        rows = (before != after).flatten(1).any(1)
        assert rows.tolist() == [position >= changed for position in range(cached_len, 14)]


def test_a_request_never_sees_its_neighbours() -> None:
    setup = Setup()
    sequences = [setup.add(one) for one in (PREFILL, PREFIX_HIT, DECODE)]
    before = setup.compute(sequences)
    sequences[1].k += 1
    sequences[1].v += 1
    setup.remember(sequences[1])
    after = setup.compute(sequences)
    same = [torch.equal(x, y) for x, y in zip(before, after, strict=True)]
    assert same == [True, False, True]


def test_requests_may_read_the_same_pages() -> None:
    """Two requests whose texts begin alike need that beginning only once."""
    setup = Setup(page_size=4)
    one, other = setup.add((8, 3), pages=[3, 4, 5]), setup.add((8, 2), pages=[3, 4, 9])
    other.k[:, :8], other.v[:, :8] = one.k[:, :8], one.v[:, :8]
    setup.remember(one)
    for out, sequence in zip(setup.compute([one, other]), [one, other], strict=True):
        assert_dense(out, sequence)


# --- what is written ------------------------------------------------------------------------------


@layouts
def test_new_keys_and_values_are_kept_where_out_loc_says_and_nowhere_else(layout: str) -> None:
    setup = Setup(page_size=3)
    sequences = [setup.add(one, layout) for one in (PREFILL, PREFIX_HIT, DECODE)]
    setup.compute(sequences, layer_id=1)
    expected = torch.full_like(setup.pool.k_cache(1), torch.nan)
    for sequence in sequences:
        places = setup.page_table[sequence.req.table_idx, : sequence.req.device_len]
        expected[places] = sequence.k[1]
        assert torch.equal(setup.pool.v_cache(1)[places], sequence.v[1])
    torch.testing.assert_close(setup.pool.k_cache(1), expected, rtol=0, atol=0, equal_nan=True)
    past = setup.page_table[0, : PREFILL[1]]
    assert setup.pool.k_cache(0)[past].isnan().all()  # the other layer has its own place


# --- what is read, and how ------------------------------------------------------------------------


Calls = list[tuple[torch.Tensor, ...]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The queries, keys and values of each call of torch's attention."""
    seen: Calls = []
    original = F.scaled_dot_product_attention

    def spy(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
        seen.append((q, k, v))
        return original(q, k, v, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    return seen


def is_view_of(part: torch.Tensor, whole: torch.Tensor) -> bool:
    return part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()


def test_no_token_is_computed_that_no_request_has(calls: Calls) -> None:
    """There is no padding: a batch costs what its requests cost."""
    setup = Setup()
    setup.compute([setup.add(one) for one in (PREFILL, PREFIX_HIT, DECODE)])
    sizes = [(q.shape[-2], k.shape[-2], v.shape[-2]) for q, k, v in calls]
    assert sizes == [(7, 7, 7), (5, 14, 14), (1, 13, 13)]


def test_a_run_is_read_in_place_and_scattered_pages_are_gathered(calls: Calls) -> None:
    setup = Setup()
    run, scattered = setup.add(PREFIX_HIT, "run"), setup.add(PREFIX_HIT, "scattered")
    setup.compute([run, scattered], layer_id=1)
    (_, run_k, run_v), (_, scattered_k, scattered_v) = calls
    first = int(setup.page_table[run.req.table_idx, 0])
    assert run_k.data_ptr() == setup.pool.k_cache(1)[first].data_ptr()
    assert run_v.data_ptr() == setup.pool.v_cache(1)[first].data_ptr()
    assert not is_view_of(scattered_k, setup.pool.k_cache(1))
    assert not is_view_of(scattered_v, setup.pool.v_cache(1))


def test_a_run_may_begin_anywhere_in_the_pool(calls: Calls) -> None:
    setup = Setup(page_size=4)
    end = NUM_TOKENS // 4
    sequence = setup.add(DECODE, pages=list(range(end - 4, end)))  # the last pages of all
    [out] = setup.compute([sequence])
    assert is_view_of(calls[0][1], setup.pool.k_cache(0))
    assert_dense(out, sequence)


@pytest.mark.parametrize("elsewhere", range(4))
def test_one_page_elsewhere_makes_a_request_scattered(elsewhere: int, calls: Calls) -> None:
    setup, pages = Setup(page_size=4), [10, 11, 12, 13]
    pages[elsewhere] = 50
    sequence = setup.add(DECODE, pages=pages)
    [out] = setup.compute([sequence])
    assert not is_view_of(calls[0][1], setup.pool.k_cache(0))
    assert_dense(out, sequence)


def test_pages_for_tokens_to_come_are_not_read(calls: Calls) -> None:
    """A run is as long as what the request may become; what it has now is its beginning."""
    setup = Setup(page_size=4)
    sequence = setup.add(DECODE, pages=[10, 11, 12, 13, 14, 15])
    [out] = setup.compute([sequence])
    assert calls[0][1].shape[-2] == 13
    assert is_view_of(calls[0][1], setup.pool.k_cache(0))
    assert_dense(out, sequence)


# --- the scheduler: one pass for all --------------------------------------------------------------


Passes = list[list[int]]


def passes(engine: Any) -> Passes:
    """The requests of each pass."""
    return [list(batch) for batch in engine.batches]


def test_one_pass_computes_the_whole_batch() -> None:
    engine = fake_engine(max_running_reqs=8, page_size=4)
    scheduler = Scheduler(engine, NEVER)
    requests = [make_request(uid, list(range(3, 5 + uid)), 4, ignore_eos=True) for uid in range(5)]
    for request in requests:
        scheduler.add(request)
    for count in range(1, 5):
        scheduler.step()
        assert len(engine.batches) == count
        assert [len(request.token_ids) for request in requests] == [count] * 5
        scheduler.check_invariants()
    lengths = [{uid: (0, 2 + uid) for uid in range(5)}]  # of the prompts, then of one token more
    lengths += [{uid: (n + uid, 1 + n + uid) for uid in range(5)} for n in (2, 3, 4)]
    assert engine.batches == lengths
    answers = [engine.answer(request.input_ids, 4) for request in requests]
    assert [request.token_ids for request in requests] == answers


def test_a_finished_request_costs_nothing_more() -> None:
    engine = fake_engine(max_running_reqs=4, page_size=4)
    scheduler = Scheduler(engine, NEVER)
    for uid, output_len in enumerate([1, 4, 2]):
        scheduler.add(make_request(uid, [7, 8], output_len, ignore_eos=True))
    for _ in range(5):
        scheduler.step()
        scheduler.check_invariants()
    assert passes(engine) == [[0, 1, 2], [1, 2], [1], [1]]


def test_more_requests_than_rows_run_in_several_batches() -> None:
    """A static batch: who waits does not join before the last of those who run is done."""
    engine = fake_engine(max_running_reqs=2, page_size=4)
    scheduler = Scheduler(engine, NEVER)
    requests = [make_request(uid, [7 + uid], n) for uid, n in enumerate([3, 1, 2, 2, 1])]
    for request in requests:
        scheduler.add(request)
    for _ in range(6):
        scheduler.step()
        scheduler.check_invariants()
    assert passes(engine) == [[0, 1], [0], [0], [2, 3], [2, 3], [4]]
    assert all(r.token_ids == engine.answer(r.input_ids, r.output_len) for r in requests)


def test_more_requests_than_pages_run_in_several_batches() -> None:
    # Each has 18 tokens with KV, in 5 pages of 4: two of them fit into 11.
    engine = fake_engine(max_running_reqs=8, page_size=4, num_pages=11, max_seq_len=32)
    scheduler = Scheduler(engine, NEVER)
    requests = [make_request(uid, [7 + uid] * 11, 8) for uid in range(5)]
    for request in requests:
        scheduler.add(request)
    for _ in range(24):
        scheduler.step()
        scheduler.check_invariants()
    assert passes(engine) == [[0, 1]] * 8 + [[2, 3]] * 8 + [[4]] * 8
    assert all(request.token_ids == engine.answer(request.input_ids, 8) for request in requests)


@pytest.mark.parametrize("seed", range(20))
def test_random_requests_get_what_they_get_alone(seed: int) -> None:
    chance = random.Random(seed)
    page_size = chance.choice([1, 2, 3, 4, 16])
    engine = fake_engine(max_running_reqs=5, page_size=page_size, num_pages=-(-60 // page_size))
    scheduler = Scheduler(engine, NEVER)
    requests = [
        make_request(uid, [3 + chance.randrange(2) for _ in range(chance.randint(1, 20))], n)
        for uid, n in enumerate(chance.choices(range(1, 12), k=12))
    ]
    for request in requests:
        scheduler.add(request)
    while any(request.finish_reason is None for request in requests):
        scheduler.step()
        scheduler.check_invariants()
    assert all(r.token_ids == engine.answer(r.input_ids, r.output_len) for r in requests)


# --- what passes between host and device ----------------------------------------------------------


@pytest.mark.guard
def test_a_read_from_the_device_does_not_escape_the_count() -> None:
    """The instrument itself: `DeviceReads` counts each way to a value, and nothing else."""
    with DeviceReads() as reads:
        host = torch.arange(5)
        device = host.to(DEVICE)
        values = torch.ones(3, 3, device=DEVICE)[0]
        ways: list[Callable[[], object]] = [
            device.cpu,
            device.tolist,
            device.numpy,
            lambda: device.to("cpu"),
            lambda: device[1].item(),
            lambda: int(device[1]),
            lambda: float(device[1]),
            lambda: bool(device[1]),
            lambda: 3 in device,
            lambda: host[: device[1]],
            lambda: device[device > 1],
            lambda: torch.equal(device, device),
            lambda: device.nonzero(),
            lambda: host.copy_(device),
            lambda: host.__setitem__(slice(5), device),
            lambda: host.clone().__setitem__(0, device[1]),
        ]
        for n, way in enumerate(ways):
            before = reads.count
            way()
            assert reads.count == before + 1, f"way {n}"
            with torch.inference_mode():
                way()
            assert reads.count == before + 2, f"way {n} in inference mode"
        before = reads.count
        device[host > 1] = host[0]
        device[:2] = torch.tensor([1, 2])
        device.index_select(0, device.clamp(max=4)).add_(host.to(device.device))
        values @ values, len(device), torch.where(device > 1, device, 0), host.to(device).max(0)
        host.tolist(), int(host[1]), host[host > 1], host.repeat_interleave(host), device.shape
        assert reads.count == before


@pytest.fixture
def scattered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the allocator hand out pages in an order in which none follows the one before."""
    allocate = PageAllocator.allocate

    def reversed_(*args: Any, **options: Any) -> list[int]:
        return allocate(*args, **options)[::-1]

    monkeypatch.setattr(PageAllocator, "allocate", reversed_)


def make_llm(folder: Path, **options: Any) -> LLM:
    return LLM(folder, **{"max_seq_len": 128, "num_pages": 60, "page_size": 16, **options})


def some_prompts(count: int, seed: int = 0) -> list[list[int]]:
    """Prompts of 1 to 30 tokens, no two of the same length."""
    chance = torch.Generator().manual_seed(seed)
    lengths = torch.randperm(30, generator=chance)[:count] + 1
    return [torch.randint(3, 384, (int(n),), generator=chance).tolist() for n in lengths]


def up_to(max_tokens: int, **options: Any) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, ignore_eos=True, **options)


@layouts
@pytest.mark.parametrize("size", [1, 8, 30])
def test_a_step_reads_once_from_the_device_however_many_requests_it_computes(
    size: int,
    layout: str,
    tiny_model: TinyModel,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """The host waits for the sampled tokens, once for all of them, and for nothing else."""
    if layout == "scattered":
        request.getfixturevalue("scattered")
    step, per_step = Scheduler.step, []
    prompts = some_prompts(size)
    with make_llm(tiny_model("llama"), page_size=4, num_pages=500) as llm:
        expected = [output.token_ids for output in llm.generate(prompts, up_to(4))]
    with DeviceReads() as reads:

        def counted(scheduler: Any, *now: float) -> None:
            before = reads.count
            step(scheduler, *now)
            per_step.append(reads.count - before)

        monkeypatch.setattr(Scheduler, "step", counted)
        options = {"page_size": 4, "num_pages": 500, "dtype": torch.float32, "device": DEVICE}
        with make_llm(tiny_model("llama"), **options) as llm:
            outputs = llm.generate(prompts, up_to(4))
    assert len(per_step) >= 4 and {*per_step} == {1}
    assert [output.token_ids for output in outputs] == expected


class Writes(TorchFunctionMode):
    """Counts the writes by index into one tensor."""

    def __init__(self) -> None:
        self.count = 0
        self.target: torch.Tensor | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.__setitem__ and self.target is not None:
            self.count += is_view_of(args[0], self.target)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("size", [1, 8, 30])
def test_the_sampled_tokens_of_a_batch_become_inputs_in_one_write(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes, init = Writes(), TableManager.__init__

    def remember(table: TableManager, page_table: torch.Tensor) -> None:
        init(table, page_table)
        writes.target = table.token_pool

    monkeypatch.setattr(TableManager, "__init__", remember)
    engine = fake_engine(max_running_reqs=32, num_pages=400, **budget(10**6))
    scheduler = Scheduler(engine, NEVER)
    for uid, prompt in enumerate(some_prompts(size)):
        scheduler.add(make_request(uid, prompt, 4))
    scheduler.step()
    with writes:
        for count in (1, 2, 3):
            scheduler.step()
            assert writes.count == count


# --- LLM: many requests at once -------------------------------------------------------------------


@dataclass
class Launch:
    """What one forward pass was given."""

    phase: str
    uids: list[int]
    num_tokens: int
    logits_rows: list[int]


def watch_launches(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    seen: list[Launch] = []
    original = llm.engine.forward_batch

    def spy(batch: Batch) -> ForwardOutput:
        uids, rows = [req.uid for req in batch.reqs], batch.logits_rows.tolist()
        seen.append(Launch(batch.phase, uids, len(batch.input_ids), rows))
        return original(batch)

    monkeypatch.setattr(llm.engine, "forward_batch", spy)
    return seen


def assert_all_free(llm: LLM) -> None:
    """Nobody runs any more, and all who come next find room."""
    llm.scheduler.step()
    llm.scheduler.check_invariants()


@page_sizes
def test_a_batch_gives_the_answers_of_lone_runs(page_size: int, tiny_model: TinyModel) -> None:
    prompts = some_prompts(6)
    params = [up_to(n) for n in (1, 20, 5, 12, 2, 9)]
    with make_llm(tiny_model("llama"), page_size=page_size, num_pages=960 // page_size) as llm:
        alone = [llm.generate([p], s)[0].token_ids for p, s in zip(prompts, params, strict=True)]
        together = [output.token_ids for output in llm.generate(prompts, params)]
        backwards = [output.token_ids for output in llm.generate(prompts[::-1], params[::-1])]
        assert_all_free(llm)
    assert together == alone
    assert backwards == alone[::-1]


@pytest.mark.parametrize("page_size", [1, 4])
def test_scattered_pages_change_no_token(
    page_size: int, tiny_model: TinyModel, request: pytest.FixtureRequest
) -> None:
    options = {"page_size": page_size, "num_pages": 480 // page_size}
    prompts = some_prompts(6)
    with make_llm(tiny_model("qwen3"), **options) as llm:
        expected = [output.token_ids for output in llm.generate(prompts, up_to(8))]
    request.getfixturevalue("scattered")
    with make_llm(tiny_model("qwen3"), **options) as llm:
        assert [output.token_ids for output in llm.generate(prompts, up_to(8))] == expected


def test_sampled_answers_do_not_depend_on_the_batch(tiny_model: TinyModel) -> None:
    prompts = some_prompts(4)
    params = [
        up_to(8, temperature=1.0, seed=1),
        up_to(8),
        up_to(8, temperature=0.7, top_k=20, seed=2),
        up_to(8, temperature=1.5, top_p=0.9, seed=3),
    ]
    with make_llm(tiny_model("qwen3")) as llm:
        alone = [llm.generate([p], s)[0].token_ids for p, s in zip(prompts, params, strict=True)]
        assert [output.token_ids for output in llm.generate(prompts, params)] == alone


def test_outputs_come_in_the_order_of_the_prompts(tiny_model: TinyModel) -> None:
    prompts = some_prompts(7)
    wanted = [9, 1, 6, 2, 8, 1, 3]
    with make_llm(tiny_model("llama"), max_running_reqs=3) as llm:
        outputs = llm.generate(prompts, [up_to(n) for n in wanted])
    assert [output.num_prompt_tokens for output in outputs] == [len(prompt) for prompt in prompts]
    assert [len(output.token_ids) for output in outputs] == wanted


def test_the_prompts_of_one_call_lie_end_to_end(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a token is sampled from the last row of each."""
    with make_llm(tiny_model("llama")) as llm:
        launches = watch_launches(llm, monkeypatch)
        llm.generate([[7] * 3, [8], [9] * 5], [up_to(3), up_to(1), up_to(2)])
    assert [launch.phase for launch in launches] == ["prefill", "decode", "decode"]
    assert [launch.num_tokens for launch in launches] == [9, 2, 1]
    assert [launch.logits_rows for launch in launches] == [[2, 3, 8], [0, 1], [0]]


def test_a_batch_is_a_decode_where_every_request_brings_one_token(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_llm(tiny_model("llama")) as llm:
        launches = watch_launches(llm, monkeypatch)
        llm.generate([[7], [8]], up_to(1))
        llm.generate([[7], [8, 9]], up_to(1))
    assert [launch.phase for launch in launches] == ["decode", "prefill"]


def test_metadata_is_prepared_once_per_batch_and_used_by_every_layer(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_llm(tiny_model("llama")) as llm:
        backend = llm.engine.ctx.attn_backend
        assert isinstance(backend, BaseAttnBackend)
        seen: list[object] = []
        prepare, forward = backend.prepare_metadata, backend.forward

        def spy_prepare(batch: Batch) -> None:
            seen.append("prepare")
            prepare(batch)

        def spy_forward(*args: Any) -> torch.Tensor:
            seen.append(args[3])
            return forward(*args)

        monkeypatch.setattr(backend, "prepare_metadata", spy_prepare)
        monkeypatch.setattr(backend, "forward", spy_forward)
        llm.generate(some_prompts(3), up_to(4))
        layers = range(llm.engine.model_config.num_layers)
    assert seen == ["prepare", *layers] * 4


def test_a_batch_is_scored_at_one_row_per_request(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head is the largest matrix of all: a prefill needs it for its last token only."""
    rows = []
    with make_llm(tiny_model("llama3")) as llm:
        vocab_size = llm.engine.model_config.vocab_size
        original = F.linear

        def spy(x: torch.Tensor, weight: torch.Tensor, *rest: Any) -> torch.Tensor:
            if len(weight) == vocab_size:
                rows.append(len(x))
            return original(x, weight, *rest)

        monkeypatch.setattr(F, "linear", spy)
        llm.generate(some_prompts(3), [up_to(1), up_to(2), up_to(3)])
    assert rows == [3, 2, 1]


def test_a_stream_and_a_batch_do_not_disturb_each_other(tiny_model: TinyModel) -> None:
    """Tokens of the stream that the batch brings along are kept until they are asked for."""
    prompts = some_prompts(4)
    with make_llm(tiny_model("llama")) as llm:
        expected = [output.token_ids for output in llm.generate(prompts, up_to(6))]
        stream = llm.stream(prompts[0], up_to(6))
        streamed = [*next(stream).token_ids, *next(stream).token_ids]
        outputs = llm.generate(prompts[1:], up_to(6))
        streamed += [token for piece in stream for token in piece.token_ids]
        assert_all_free(llm)
    assert [streamed, *(output.token_ids for output in outputs)] == expected


def test_a_batch_that_fails_gives_everything_back(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = some_prompts(3)
    with make_llm(tiny_model("llama"), max_running_reqs=3, num_pages=8) as llm:
        expected = [output.token_ids for output in llm.generate(prompts, up_to(5))]
        original, launches = llm.engine.forward_batch, []

        def fail_at_the_third(batch: Batch) -> ForwardOutput:
            launches.append(batch)
            if len(launches) == 3:
                raise MemoryError("no room for the logits")
            return original(batch)

        monkeypatch.setattr(llm.engine, "forward_batch", fail_at_the_third)
        with pytest.raises((MemoryError, RuntimeError), match="no room for the logits"):
            llm.generate(prompts, up_to(5))
        assert_all_free(llm)
        assert [output.token_ids for output in llm.generate(prompts, up_to(5))] == expected


@pytest.mark.slow
def test_the_real_model_answers_a_batch_as_it_answers_alone(real_model: Path) -> None:
    prompts = [
        [{"role": "user", "content": "What is the capital of France?"}],
        [{"role": "user", "content": "请解释什么是 KV Cache？"}],
        [{"role": "user", "content": "Name three colors. " * 8}],
    ]
    params = [SamplingParams(max_tokens=n) for n in (8, 16, 4)]
    with LLM(real_model, max_seq_len=256) as llm:
        alone = [llm.generate([p], s)[0].token_ids for p, s in zip(prompts, params, strict=True)]
        together = [output.token_ids for output in llm.generate(prompts, params)]
    assert together == alone
