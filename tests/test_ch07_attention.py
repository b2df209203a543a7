"""Chapter 7: requests of any length share a batch, and each gets the answer it would get alone.

The oracle of the backend is attention written out token by token. That of `LLM` is `LLM` itself
with one request at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from minisgl.attention.base import BaseAttnBackend
from minisgl.attention.torch_backend import TorchAttnBackend
from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.engine import ForwardOutput
from minisgl.kvcache.pool import PagedKVPool
from minisgl.llm import LLM

LAYERS, QO_HEADS, KV_HEADS, HEAD_DIM = 2, 6, 2, 8
NUM_TOKENS, NUM_ROWS, MAX_SEQ_LEN = 480, 8, 64  # of the pool, of the page table
NO_HANDLE: Any = None  # nothing is locked where there is no prefix cache

# Of each request: how many tokens are cached, and how many are new.
PREFILL, PREFIX_HIT, DECODE = (0, 7), (9, 5), (12, 1)
Lengths = tuple[int, int]
TinyModel = Callable[[str], Path]

page_sizes = pytest.mark.parametrize("page_size", [1, 3, 4, 16])
layouts = pytest.mark.parametrize("layout", ["run", "scattered"])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


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
        self.backend = TorchAttnBackend(self.pool, self.page_table)
        self.sequences: list[Sequence] = []

    def add(self, lengths: Lengths, layout: str = "run", first_page: int | None = None) -> Sequence:
        """A request in the next row, its pages in an area of its own."""
        row, (cached_len, num_new) = len(self.sequences), lengths
        length = cached_len + num_new
        num_pages = -(-length // self.page_size)
        area = NUM_TOKENS // self.page_size // NUM_ROWS
        first = row * area if first_page is None else first_page
        pages = torch.arange(first, first + num_pages)
        if layout == "scattered":
            pages = pages.flip(0)  # every page is there, no page follows the one before it
        starts = pages[:, None] * self.page_size + torch.arange(self.page_size)
        self.page_table[row, :length] = starts.flatten()[:length]
        req = Req(torch.arange(length).int(), row, cached_len, 4, row, SamplingParams(), NO_HANDLE)
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


@pytest.mark.parametrize(
    ("lengths", "last"),
    [([PREFILL], [6]), ([DECODE, DECODE], [0, 1]), ([DECODE, PREFILL, PREFIX_HIT], [0, 7, 12])],
)
def test_the_row_that_is_sampled_from_is_the_last_of_each_request(
    lengths: list[Lengths], last: list[int]
) -> None:
    setup = Setup()
    batch = setup.prepare([setup.add(one) for one in lengths])
    assert batch.attn_metadata.last_indices.tolist() == last


# --- the dense answer -----------------------------------------------------------------------------


@layouts
@page_sizes
def test_a_prefill_a_prefix_hit_and_a_decode_in_one_batch_equal_the_dense_answer(
    page_size: int, layout: str
) -> None:
    setup = Setup(page_size)
    sequences = [setup.add(one, layout) for one in (PREFILL, PREFIX_HIT, DECODE)]
    for out, sequence in zip(setup.compute(sequences), sequences, strict=True):
        assert_dense(out, sequence)


@layouts
@pytest.mark.parametrize("lengths", [PREFILL, PREFIX_HIT, DECODE, (0, 1), (1, 1), (1, 2), (40, 24)])
def test_a_request_alone_equals_the_dense_answer(lengths: Lengths, layout: str) -> None:
    setup = Setup()
    sequence = setup.add(lengths, layout)
    assert_dense(setup.compute([sequence])[0], sequence)


@pytest.mark.parametrize("seed", range(8))
def test_ragged_batches_equal_the_dense_answer(seed: int) -> None:
    setup = Setup(page_size=[1, 3, 4, 16][seed % 4], seed=seed)
    drawn = torch.randint(0, 20, (NUM_ROWS, 2), generator=setup.random).tolist()
    layouts = ["run" if cached % 2 else "scattered" for cached, _ in drawn]
    sequences = [
        setup.add((cached, 1 + new), layout)
        for (cached, new), layout in zip(drawn, layouts, strict=True)
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
    one, other = setup.add((8, 3)), setup.add((8, 2))
    setup.page_table[other.req.table_idx, :8] = setup.page_table[one.req.table_idx, :8]
    other.k[:, :8], other.v[:, :8] = one.k[:, :8], one.v[:, :8]
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


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[torch.Tensor, ...]]:
    """The queries, keys and values of each call of torch's attention."""
    seen: list[tuple[torch.Tensor, ...]] = []
    original = F.scaled_dot_product_attention

    def spy(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
        seen.append((q, k, v))
        return original(q, k, v, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    return seen


def is_view_of(part: torch.Tensor, whole: torch.Tensor) -> bool:
    return part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()


def test_no_token_is_computed_that_no_request_has(calls: list[tuple[torch.Tensor, ...]]) -> None:
    """There is no padding: a batch costs what its requests cost."""
    setup = Setup()
    setup.compute([setup.add(one) for one in (PREFILL, PREFIX_HIT, DECODE)])
    sizes = [(q.shape[-2], k.shape[-2], v.shape[-2]) for q, k, v in calls]
    assert sizes == [(7, 7, 7), (5, 14, 14), (1, 13, 13)]


def test_a_run_is_read_in_place_and_scattered_pages_are_gathered(
    calls: list[tuple[torch.Tensor, ...]],
) -> None:
    setup = Setup()
    run, scattered = setup.add(PREFIX_HIT, "run"), setup.add(PREFIX_HIT, "scattered")
    setup.compute([run, scattered], layer_id=1)
    (_, run_k, run_v), (_, scattered_k, scattered_v) = calls
    first = int(setup.page_table[run.req.table_idx, 0])
    assert run_k.data_ptr() == setup.pool.k_cache(1)[first].data_ptr()
    assert run_v.data_ptr() == setup.pool.v_cache(1)[first].data_ptr()
    assert not is_view_of(scattered_k, setup.pool.k_cache(1))
    assert not is_view_of(scattered_v, setup.pool.v_cache(1))


def test_a_run_may_begin_anywhere_in_the_pool(calls: list[tuple[torch.Tensor, ...]]) -> None:
    setup = Setup(page_size=4)
    sequence = setup.add(DECODE, first_page=NUM_TOKENS // 4 - 4)  # the last pages of all
    [out] = setup.compute([sequence])
    assert is_view_of(calls[0][1], setup.pool.k_cache(0))
    assert_dense(out, sequence)


@pytest.mark.parametrize("broken_at", [4, 8, 12])
def test_one_page_elsewhere_makes_a_request_scattered(
    broken_at: int, calls: list[tuple[torch.Tensor, ...]]
) -> None:
    setup = Setup(page_size=4)
    sequence = setup.add(DECODE)
    setup.page_table[0, broken_at : broken_at + 4] += 40
    setup.remember(sequence)
    [out] = setup.compute([sequence])
    assert not is_view_of(calls[0][1], setup.pool.k_cache(0))
    assert_dense(out, sequence)


def test_what_lies_behind_the_tokens_of_a_request_makes_no_difference(
    calls: list[tuple[torch.Tensor, ...]],
) -> None:
    """Its pages for later tokens may lie anywhere: what exists so far is still a run."""
    setup = Setup(page_size=4)
    sequence = setup.add(DECODE)
    setup.page_table[0, 13:] = 7
    assert_dense(setup.compute([sequence])[0], sequence)
    assert is_view_of(calls[0][1], setup.pool.k_cache(0))


# --- LLM: many requests at once -------------------------------------------------------------------


def make_llm(folder: Path, **options: Any) -> LLM:
    return LLM(folder, **{"max_seq_len": 128, "num_pages": 60, "page_size": 16, **options})


def some_prompts(count: int, seed: int = 0) -> list[list[int]]:
    """Prompts of 1 to 30 tokens, no two of the same length."""
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randperm(30, generator=random)[:count] + 1
    return [torch.randint(3, 384, (int(n),), generator=random).tolist() for n in lengths]


def up_to(max_tokens: int, **options: Any) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, ignore_eos=True, **options)


@dataclass
class Launch:
    """What one forward pass was given."""

    phase: str
    uids: list[int]
    num_tokens: int


def watch_launches(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    seen: list[Launch] = []
    original = llm.engine.forward_batch

    def spy(batch: Batch) -> ForwardOutput:
        seen.append(Launch(batch.phase, [req.uid for req in batch.reqs], len(batch.input_ids)))
        return original(batch)

    monkeypatch.setattr(llm.engine, "forward_batch", spy)
    return seen


def who_ran(launches: list[Launch]) -> list[list[int]]:
    """The requests of each pass, numbered from the first one on."""
    first = launches[0].uids[0]
    return [[uid - first for uid in launch.uids] for launch in launches]


def assert_all_free(llm: LLM) -> None:
    assert llm._table.num_free_rows == llm.engine.config.max_running_reqs


@page_sizes
def test_a_batch_gives_the_answers_of_lone_runs(page_size: int, tiny_model: TinyModel) -> None:
    prompts = some_prompts(6)
    params = [up_to(n) for n in (1, 20, 5, 12, 2, 9)]
    with make_llm(tiny_model("llama"), page_size=page_size, num_pages=960 // page_size) as llm:
        alone = [llm.generate([p], s)[0].token_ids for p, s in zip(prompts, params, strict=True)]
        together = [output.token_ids for output in llm.generate(prompts, params)]
        backwards = [output.token_ids for output in llm.generate(prompts[::-1], params[::-1])]
    assert together == alone
    assert backwards == alone[::-1]


def test_sampled_answers_do_not_depend_on_the_batch(tiny_model: TinyModel) -> None:
    prompts = some_prompts(4)
    params = [
        up_to(8, temperature=1.0, seed=1),
        up_to(8),
        up_to(8, temperature=0.7, top_k=20, seed=2, frequency_penalty=0.5),
        up_to(8, temperature=1.5, top_p=0.9, seed=3),
    ]
    with make_llm(tiny_model("qwen3")) as llm:
        alone = [llm.generate([p], s)[0].token_ids for p, s in zip(prompts, params, strict=True)]
        assert [output.token_ids for output in llm.generate(prompts, params)] == alone


def test_logprobs_are_each_requests_own(tiny_model: TinyModel) -> None:
    prompts = some_prompts(3)
    params = [up_to(4, logprobs=2), up_to(4), up_to(2, logprobs=0)]
    with make_llm(tiny_model("llama")) as llm:
        outputs = llm.generate(prompts, params)
        [alone] = llm.generate([prompts[0]], params[0])
    found = [[one.token_id for one in output.logprobs or ()] for output in outputs]
    assert found == [outputs[0].token_ids, [], outputs[2].token_ids]
    assert outputs[0].logprobs is not None and alone.logprobs is not None
    for one, other in zip(outputs[0].logprobs, alone.logprobs, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)


def test_outputs_come_in_the_order_of_the_prompts(tiny_model: TinyModel) -> None:
    prompts = some_prompts(7)
    wanted = [9, 1, 6, 2, 8, 1, 3]
    with make_llm(tiny_model("llama"), max_running_reqs=3) as llm:
        outputs = llm.generate(prompts, [up_to(n) for n in wanted])
    assert [output.num_prompt_tokens for output in outputs] == [len(prompt) for prompt in prompts]
    assert [len(output.token_ids) for output in outputs] == wanted


def test_prompts_of_one_call_run_in_one_batch(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = some_prompts(5)
    with make_llm(tiny_model("llama")) as llm:
        launches = watch_launches(llm, monkeypatch)
        llm.generate(prompts, up_to(3))
    assert [launch.num_tokens for launch in launches] == [sum(map(len, prompts)), 5, 5]
    assert [launch.phase for launch in launches] == ["prefill", "decode", "decode"]


def test_a_finished_request_costs_nothing_more(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_llm(tiny_model("llama")) as llm:
        launches = watch_launches(llm, monkeypatch)
        llm.generate(some_prompts(3), [up_to(1), up_to(4), up_to(2)])
    assert who_ran(launches) == [[0, 1, 2], [1, 2], [1], [1]]


def test_a_batch_is_a_decode_where_every_request_brings_one_token(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_llm(tiny_model("llama")) as llm:
        launches = watch_launches(llm, monkeypatch)
        llm.generate([[7], [8]], up_to(1))
        llm.generate([[7], [8, 9]], up_to(1))
    assert [launch.phase for launch in launches] == ["decode", "prefill"]


def test_more_prompts_than_rows_run_in_several_batches(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A static batch: who waits does not join before the last of those who run is done."""
    prompts = some_prompts(5)
    params = [up_to(n) for n in (3, 1, 2, 2, 1)]
    with make_llm(tiny_model("llama")) as llm:
        expected = [output.token_ids for output in llm.generate(prompts, params)]
    with make_llm(tiny_model("llama"), max_running_reqs=2) as llm:
        launches = watch_launches(llm, monkeypatch)
        outputs = llm.generate(prompts, params)
        assert_all_free(llm)
    assert who_ran(launches) == [[0, 1], [0], [0], [2, 3], [2, 3], [4]]
    assert [output.token_ids for output in outputs] == expected


def test_more_prompts_than_pages_run_in_several_batches(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [some_prompts(1, seed)[0][:4] + [5] * 4 for seed in range(5)]
    with make_llm(tiny_model("llama")) as llm:
        expected = [output.token_ids for output in llm.generate(prompts, up_to(8))]
    # A request of 16 tokens takes 4 pages of 4: two fit into 11.
    options = {"page_size": 4, "num_pages": 11, "max_seq_len": 32}
    with make_llm(tiny_model("llama"), **options) as llm:
        launches = watch_launches(llm, monkeypatch)
        outputs = llm.generate(prompts, up_to(8))
        assert_all_free(llm)
    assert max(len(launch.uids) for launch in launches) == 2
    assert [output.token_ids for output in outputs] == expected


def test_metadata_is_prepared_once_per_batch_and_used_by_every_layer(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_llm(tiny_model("llama")) as llm:
        backend = llm.engine.ctx.attn_backend
        assert isinstance(backend, BaseAttnBackend)
        calls: list[object] = []
        prepare, forward = backend.prepare_metadata, backend.forward

        def spy_prepare(batch: Batch) -> None:
            calls.append("prepare")
            prepare(batch)

        def spy_forward(*args: Any) -> torch.Tensor:
            calls.append(args[3])
            return forward(*args)

        monkeypatch.setattr(backend, "prepare_metadata", spy_prepare)
        monkeypatch.setattr(backend, "forward", spy_forward)
        llm.generate(some_prompts(3), up_to(4))
        layers = range(llm.engine.model_config.num_layers)
    assert calls == ["prepare", *layers] * 4


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


def test_a_request_that_does_not_fit_beside_a_stream_is_told_so(tiny_model: TinyModel) -> None:
    with make_llm(tiny_model("llama"), max_running_reqs=1) as llm:
        stream = llm.stream([5, 6, 7], up_to(4))
        next(stream)
        with pytest.raises(RuntimeError, match="stream"):
            llm.generate([[5, 6, 7]], up_to(4))
        stream.close()  # type: ignore[attr-defined]  # a generator
        assert len(llm.generate([[5, 6, 7]], up_to(4))[0].token_ids) == 4


def test_a_stream_and_a_batch_do_not_disturb_each_other(tiny_model: TinyModel) -> None:
    prompts = some_prompts(4)
    with make_llm(tiny_model("llama")) as llm:
        expected = [output.token_ids for output in llm.generate(prompts, up_to(6))]
        stream = llm.stream(prompts[0], up_to(6))
        streamed = [*next(stream).token_ids, *next(stream).token_ids]
        outputs = llm.generate(prompts[1:], up_to(6))
        streamed += [token for piece in stream for token in piece.token_ids]
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
        with pytest.raises(MemoryError):
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
