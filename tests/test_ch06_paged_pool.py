"""Chapter 6: memory is given out in pages, by need, and where a page lies changes no token.

The oracle computes everything again for each token: transformers without its cache. What the
engine gives to a request is watched where it has to pass, at `Engine.forward_batch`.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from minisgl.core import Batch, SamplingParams
from minisgl.engine.engine import Engine, ForwardOutput
from minisgl.kvcache.allocator import PageAllocator
from minisgl.llm import LLM, StreamOutput
from minisgl.scheduler.table import TableManager
from tiny_models import ARCHITECTURES

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


def recomputed(folder: Path, prompts: Sequence[list[int]], max_tokens: int) -> list[list[int]]:
    """The greedy tokens, all of a text computed again for each."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    answers = []
    for prompt in prompts:
        ids = list(prompt)
        for _ in range(max_tokens):
            with torch.inference_mode():
                logits = model(torch.tensor([ids]), use_cache=False, logits_to_keep=1).logits
            ids.append(int(logits[0, -1].argmax()))
        answers.append(ids[len(prompt) :])
    return answers


def tokens(stream: Iterator[StreamOutput]) -> list[int]:
    return [token for piece in stream for token in piece.token_ids]


def close(stream: Iterator[StreamOutput]) -> None:
    stream.close()  # type: ignore[attr-defined]  # a generator


class Watch:
    """Remembers each request's row of the page table, and all batches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: dict[int, list[int]] = {}  # uid -> the locations of all tokens it may have
        self.batches: list[tuple[list[int], list[int], list[int]]] = []  # ids, positions, out_loc
        forward = Engine.forward_batch

        def forward_batch(engine: Engine, batch: Batch) -> ForwardOutput:
            [req] = batch.reqs
            row = engine.ctx.page_table[req.table_idx, : req.max_device_len].tolist()
            assert self.rows.setdefault(req.uid, row) == row, "locations do not move"
            described = (batch.input_ids, batch.positions, batch.out_loc)
            ids, positions, out_loc = (tensor.tolist() for tensor in described)
            assert out_loc == [row[position] for position in positions]
            self.batches.append((ids, positions, out_loc))
            return forward(engine, batch)

        monkeypatch.setattr(Engine, "forward_batch", forward_batch)


def is_run(locations: list[int]) -> bool:
    return locations == list(range(locations[0], locations[0] + len(locations)))


# --- Which pages are free ---------------------------------------------------------------------


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
    assert allocator.allocate(2) == [2, 5]


# --- The two tables ---------------------------------------------------------------------------


def test_a_row_belongs_to_one_request_until_it_is_freed() -> None:
    table = TableManager(torch.zeros(4, 10, dtype=torch.int32))
    rows = [table.allocate() for _ in range(4)]
    assert sorted(rows) == [0, 1, 2, 3]
    assert table.num_free_rows == 0
    table.free(rows[2])
    assert table.num_free_rows == 1
    assert table.allocate() == rows[2]


def test_freeing_a_row_twice_names_it() -> None:
    table = TableManager(torch.zeros(4, 10, dtype=torch.int32))
    row = table.allocate()
    table.free(row)
    with pytest.raises(AssertionError, match=f"row {row} is free already"):
        table.free(row)


@page_sizes
def test_the_page_table_holds_a_location_per_token_whatever_the_page_size(
    page_size: int, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = LLM(tiny_model("llama"), page_size=page_size, max_seq_len=64)
    watch = Watch(monkeypatch)
    lengths = [(1, 1), (5, 3), (page_size, 5), (2 * page_size - 1, 1), (20, 30)]
    streams = [
        llm.stream(some_ids(n, prompt_len), greedy(output_len))
        for n, (prompt_len, output_len) in enumerate(lengths)
    ]
    for stream in streams:
        next(stream)
    owners: dict[int, int] = {}  # page -> uid
    for (uid, row), (prompt_len, output_len) in zip(watch.rows.items(), lengths, strict=True):
        assert len(set(row)) == len(row) == prompt_len + output_len
        pages = [location // page_size for location in row]
        for position, location in enumerate(row):
            assert location % page_size == position % page_size
            assert pages[position] == pages[position - position % page_size]
            assert owners.setdefault(pages[position], uid) == uid
        # Reserved beyond what is needed: less than a page.
        assert len(set(pages)) * page_size - len(row) < page_size
    assert all(0 <= page < llm.engine.num_pages for page in owners)


def test_the_token_pool_holds_the_prompt_and_every_sampled_token(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: list[TableManager] = []
    init = TableManager.__init__

    def remember(table: TableManager, page_table: torch.Tensor) -> None:
        init(table, page_table)
        tables.append(table)

    monkeypatch.setattr(TableManager, "__init__", remember)
    llm = LLM(tiny_model("qwen2"), max_seq_len=24)
    watch = Watch(monkeypatch)
    prompt = some_ids(0, 10)
    [output] = llm.generate(prompt, greedy(14))  # the last token takes the last column
    [table] = tables
    assert table.token_pool.shape == table.page_table.shape == llm.engine.ctx.page_table.shape
    [row] = table.token_pool.any(dim=1).nonzero().flatten().tolist()
    assert table.token_pool[row].tolist() == prompt + output.token_ids
    # … and the next input comes from there.
    computed = [token for ids, _, _ in watch.batches for token in ids]
    assert computed == prompt + output.token_ids[:-1]


# --- The same tokens --------------------------------------------------------------------------


@page_sizes
def test_tokens_equal_those_of_recomputing_everything(
    arch: str, page_size: int, tiny_model: TinyModel
) -> None:
    llm = LLM(tiny_model(arch), page_size=page_size)
    texts = [llm.tokenizer(text)["input_ids"] for text in TEXTS]
    prompts = [*texts, some_ids(0, 1), some_ids(1, 16), some_ids(2, 47)]
    outputs = llm.generate(prompts, greedy(18))
    expected = recomputed(tiny_model(arch), prompts, 18)
    assert [output.token_ids for output in outputs] == expected


@page_sizes
def test_scattered_pages_change_no_token(
    page_size: int, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_model("qwen3")
    llm = LLM(folder, page_size=page_size, num_pages=8 * -(-12 // page_size))
    streams = [llm.stream(some_ids(n, 10), greedy(2)) for n in range(8)]
    for stream in streams:
        next(stream)
    for stream in streams[::2]:
        close(stream)  # four holes, none of them enough for what comes next
    watch = Watch(monkeypatch)
    prompt = some_ids(99, 25)
    [output] = llm.generate(prompt, greedy(15))
    [row] = watch.rows.values()
    assert not is_run(row)
    assert output.token_ids == recomputed(folder, [prompt], 15)[0]


def test_a_request_gets_one_run_where_there_is_one(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = LLM(tiny_model("llama"), page_size=4, num_pages=30)
    watch = Watch(monkeypatch)
    small, large = (llm.stream(some_ids(n, 9), greedy(3)) for n in (1, 2))
    next(small), next(large)
    close(small)  # a hole of three pages before the other one's
    next(llm.stream(some_ids(3, 30), greedy(10)))
    next(llm.stream(some_ids(4, 8), greedy(4)))
    assert len(watch.rows) == 4
    assert all(is_run(row) for row in watch.rows.values())


@pytest.mark.parametrize("seed", range(3))
def test_interleaved_streams_in_pages_do_not_disturb_each_other(
    seed: int, tiny_model: TinyModel
) -> None:
    folder, rng = tiny_model("mistral"), random.Random(seed)
    llm = LLM(folder, page_size=3, num_pages=40)
    prompts = [some_ids(100 * seed + n, rng.randint(1, 30)) for n in range(12)]
    expected = recomputed(folder, prompts, 8)
    waiting = list(range(12))
    streams: dict[int, Iterator[StreamOutput]] = {}
    answers: dict[int, list[int]] = {n: [] for n in waiting}
    while waiting or streams:
        if waiting and len(streams) < 3:
            n = waiting.pop(0)
            streams[n] = llm.stream(prompts[n], greedy(8))
        n = rng.choice(sorted(streams))
        piece = next(streams[n])
        answers[n] += piece.token_ids
        if piece.finish_reason:
            del streams[n]
        elif rng.random() < 0.05:
            close(streams.pop(n))
    for n, answer in answers.items():
        assert answer and answer == expected[n][: len(answer)]


@pytest.mark.slow
@pytest.mark.parametrize("page_size", [3, 16])
def test_the_real_model_gives_the_same_tokens_from_pages(real_model: Path, page_size: int) -> None:
    llm = LLM(real_model, page_size=page_size, max_seq_len=256)
    texts = ["请解释什么是 KV Cache？", "The capital of France is"]
    prompts = [llm.tokenizer(text)["input_ids"] for text in texts]
    expected = recomputed(real_model, prompts, 8)
    assert [output.token_ids for output in llm.generate(prompts, greedy(8))] == expected


# --- Memory by need ---------------------------------------------------------------------------


def test_the_pool_takes_the_memory_of_its_pages_and_no_more(tiny_model: TinyModel) -> None:
    llm = LLM(tiny_model("qwen3"), page_size=3, num_pages=50, max_running_reqs=40)
    # Keys and values, of 3 layers, 2 heads and 32 dimensions, in fp32.
    cache: Any = llm.engine.ctx.kv_cache
    assert cache.num_bytes == 50 * 3 * 2 * 3 * 2 * 32 * 4
    assert len(cache.k_cache(2)) == len(cache.v_cache(2)) == 150


@page_sizes
def test_by_default_there_are_pages_for_four_of_the_longest(
    page_size: int, tiny_model: TinyModel
) -> None:
    engine = LLM(tiny_model("llama"), page_size=page_size, max_seq_len=50).engine
    assert engine.max_seq_len == 50
    assert 4 * 50 <= engine.num_pages * page_size < 4 * 50 + page_size


def test_many_short_requests_run_in_the_memory_of_four_rows(tiny_model: TinyModel) -> None:
    folder, prompts = tiny_model("llama3"), [some_ids(n, 10) for n in range(20)]
    llm = LLM(folder, max_seq_len=80, page_size=4)  # by default for 4 * 80 tokens
    streams = [llm.stream(prompt, greedy(6)) for prompt in prompts]  # 16 tokens each
    begun = [next(stream).token_ids for stream in streams]
    with pytest.raises(RuntimeError, match="read or close a stream that is still open"):
        next(llm.stream(some_ids(99, 1), greedy(1)))
    answers = [first + tokens(stream) for first, stream in zip(begun, streams, strict=True)]
    assert answers == recomputed(folder, prompts, 6)


def test_one_too_large_beside_an_open_stream_is_refused_and_the_stream_goes_on(
    tiny_model: TinyModel,
) -> None:
    folder, prompts = tiny_model("qwen2"), [some_ids(0, 10), some_ids(1, 50)]
    llm = LLM(folder, page_size=4, num_pages=16)
    [small, large] = recomputed(folder, prompts, 10)
    stream = llm.stream(prompts[0], greedy(10))
    begun = next(stream).token_ids
    with pytest.raises(RuntimeError, match="does not fit beside those that run"):
        llm.generate(prompts[1], greedy(10))
    assert begun + tokens(stream) == small
    assert llm.generate(prompts[1], greedy(10))[0].token_ids == large


def test_what_can_never_fit_is_refused_at_once(tiny_model: TinyModel) -> None:
    folder = tiny_model("llama")
    llm = LLM(folder, page_size=4, num_pages=5)
    assert llm.engine.max_seq_len == 20  # bounded by the pool
    stream = llm.stream(some_ids(0, 4), greedy(4))
    begun = next(stream).token_ids
    for length in (20, 21, 1000):
        rule = rf"shorter than max_seq_len \(20 tokens\), this one has {length}: shorten it"
        with pytest.raises(ValueError, match=rule):
            llm.stream(some_ids(1, length))
        with pytest.raises(ValueError, match=rule):
            llm.generate([some_ids(1, 3), some_ids(1, length)], greedy(2))
    assert begun + tokens(stream) == recomputed(folder, [some_ids(0, 4)], 4)[0]
    [longest] = llm.generate(some_ids(2, 19))
    assert (len(longest.token_ids), longest.finish_reason) == (1, "length")


def fail(engine: Engine, batch: Batch) -> ForwardOutput:
    raise MemoryError("no room for the activations")


@pytest.mark.parametrize("how", ["finished", "closed", "failed at once", "failed later"])
def test_every_page_and_row_comes_back(
    how: str, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_model("mistral")
    llm = LLM(folder, page_size=3, num_pages=20, max_running_reqs=1)
    for n in range(3):
        stream = llm.stream(some_ids(n, 33), greedy(20))
        if how == "finished":
            assert len(tokens(stream)) == 20
            continue
        if how != "failed at once":
            next(stream)
        if how == "closed":
            close(stream)
            continue
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "forward_batch", fail)
            with pytest.raises(MemoryError, match="no room for the activations"):
                next(stream)
    prompt = some_ids(9, 40)  # it needs the only row and all pages
    [output] = llm.generate(prompt, greedy(20))
    assert output.token_ids == recomputed(folder, [prompt], 20)[0]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"page_size": 0}, "page_size must be an integer of at least 1, got 0"),
        ({"page_size": 2.0}, "page_size must be an integer of at least 1, got 2.0"),
        ({"page_size": True}, "page_size must be an integer of at least 1, got True"),
        ({"page_size": -16}, "page_size must be an integer of at least 1, got -16"),
        ({"num_pages": 0}, "num_pages must be an integer of at least 1, got 0"),
        ({"max_running_reqs": 0}, "max_running_reqs must be an integer of at least 1, got 0"),
        ({"max_seq_len": 1}, "max_seq_len must be an integer of at least 2, got 1"),
        ({"num_pages": 1, "page_size": 1}, "at least 2 tokens.* got 1 page.* of 1: raise"),
        (
            {"max_seq_len": 100, "page_size": 3, "num_pages": 33},
            r"max_seq_len must be at most 99 .*\(1024\) and 33 pages of 3 .* got 100",
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


@pytest.mark.parametrize(("page_size", "prompt_len"), [(2, 1), (16, 10), (16, 15)])
def test_a_pool_of_one_page_serves_what_fits_in_it(
    page_size: int, prompt_len: int, tiny_model: TinyModel
) -> None:
    folder = tiny_model("llama")
    llm = LLM(folder, page_size=page_size, num_pages=1)
    for n in range(3):
        prompt = some_ids(n, prompt_len)
        [output] = llm.generate(prompt, greedy(100))
        assert output.finish_reason == "length"
        assert output.token_ids == recomputed(folder, [prompt], page_size - prompt_len)[0]
