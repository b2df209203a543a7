"""Chapter 5: keys and values of past tokens are computed once, kept, and no token changes.

From small to large: the cache, attention over it, the thread's own context, the scheduler on a
fake engine, the text of a stream, then the engine and `LLM`. The oracle computes everything again
for each token: transformers without its cache. What the engine computes is watched where it has
to pass, at `Engine.forward_batch`.
"""

import importlib
import math
import os
import random
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers
from torch.utils.flop_counter import FlopCounterMode
from tqdm import tqdm
from transformers import AutoModelForCausalLM, PreTrainedTokenizerBase, PreTrainedTokenizerFast

import minisgl
from fake_engine import FakeEngine, Scheduler, failing_step, fake_engine, make_request
from interrupts import interrupt_at
from minisgl.core import (
    Batch,
    Context,
    Req,
    SamplingParams,
    get_global_ctx,
    reset_global_ctx,
    set_global_ctx,
)
from minisgl.engine.engine import Engine, ForwardOutput
from minisgl.llm import LLM, StreamOutput
from minisgl.scheduler.request import Request
from minisgl.tokenizer.detokenize import Detokenizer, decode
from minisgl.tokenizer.load import load_tokenizer
from recomputing import recomputed
from tiny_models import ARCHITECTURES, make_tiny_model

TinyModel = Callable[[str], Path]
Stream = Generator[StreamOutput, None, None]

TEXTS = ["The engine stores keys and values", "请求等待,然后被调度", "def forward(self"]
CHINESE = "请解释什么是 KV Cache？"
MESSAGES = [{"role": "user", "content": "What does a scheduler do?"}]
VOCAB_SIZE = 384


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


def sampled(seed: int, max_tokens: int = 32) -> SamplingParams:
    return SamplingParams(temperature=1.0, seed=seed, max_tokens=max_tokens, ignore_eos=True)


# --- The cache: minisgl/kvcache/contiguous.py ---------------------------------------------------


def make_cache(num_rows: int, max_seq_len: int, dtype: torch.dtype = torch.float32) -> Any:
    """A cache of 3 layers, with 2 heads of 8 dimensions."""
    contiguous = importlib.import_module("minisgl.kvcache.contiguous")
    return contiguous.ContiguousKVCache(
        num_rows=num_rows,
        max_seq_len=max_seq_len,
        num_layers=3,
        num_kv_heads=2,
        head_dim=8,
        dtype=dtype,
        device=torch.device("cpu"),
    )


def test_each_row_has_places_of_its_own() -> None:
    cache = make_cache(3, 10)
    places = [range(1000)[cache.span(row, 10)] for row in range(3)]
    assert sorted(place for row in places for place in row) == list(range(30))
    assert all(range(1000)[cache.span(row, 4)] == places[row][:4] for row in range(3))
    kept = torch.randn(2, 3, 3, 4, 2, 8)  # keys and values, of 3 layers, 3 rows and 4 positions
    for layer in range(3):
        for row in range(3):
            out_loc = torch.tensor(places[row][:4])
            cache.store_kv(kept[0, layer, row], kept[1, layer, row], out_loc, layer)
    for layer in range(3):
        for row in range(3):
            span = cache.span(row, 4)
            assert torch.equal(cache.k_cache(layer)[span], kept[0, layer, row])
            assert torch.equal(cache.v_cache(layer)[span], kept[1, layer, row])


def test_a_row_takes_the_memory_of_the_longest_text() -> None:
    bytes_per_token = 2 * 3 * 2 * 8 * 4  # keys and values, layers, heads, dimensions, fp32
    assert make_cache(3, 100).num_bytes == 3 * 100 * bytes_per_token
    half = make_cache(3, 100, torch.bfloat16)
    assert half.num_bytes == 3 * 100 * bytes_per_token // 2
    assert half.k_cache(0).dtype == half.v_cache(2).dtype == torch.bfloat16
    assert half.k_cache(0).shape == half.v_cache(2).shape == (300, 2, 8)


# --- Attention over it: minisgl/layers/attention.py ---------------------------------------------


@pytest.mark.parametrize("num_new", [1, 2, 5, 8])
def test_the_last_tokens_attend_as_they_do_in_the_whole(num_new: int) -> None:
    attend: Any = importlib.import_module("minisgl.layers.attention").attend
    torch.manual_seed(num_new)
    q, k, v = torch.randn(9, 6, 16), torch.randn(9, 2, 16), torch.randn(9, 2, 16)
    whole, last = attend(q, k, v), attend(q[-num_new:], k, v)
    assert last.shape == (num_new, 6, 16)
    assert (last - whole[-num_new:]).abs().max() <= 1e-6


# --- What is current: minisgl/core.py -----------------------------------------------------------


def test_each_thread_has_a_context_of_its_own() -> None:
    contexts = [Context(page_size=1), Context(page_size=1)]
    both_have_set = threading.Barrier(2)

    def keeps_its_own(ctx: Context) -> bool:
        set_global_ctx(ctx)
        both_have_set.wait(timeout=10)
        return get_global_ctx() is ctx

    set_global_ctx(Context(page_size=1))
    try:
        with ThreadPoolExecutor(2) as threads:
            assert list(threads.map(keeps_its_own, contexts)) == [True, True]
    finally:
        reset_global_ctx()
    with pytest.raises(AssertionError, match="not set"):
        get_global_ctx()


# --- The scheduler, on a fake engine: minisgl/scheduler/static.py -------------------------------


def make_scheduler(**options: Any) -> Any:
    return Scheduler(fake_engine(**{"max_seq_len": 40} | options), frozenset())


def run(scheduler: Any, *requests: Request) -> None:
    """Step until all have ended; each must have the answer that it gets alone."""
    for _ in range(1000):  # a scheduler that gets nowhere must fail, and not run for ever
        if all(request.finish_reason for request in requests):
            break
        scheduler.step()
    for request in requests:
        assert request.token_ids == alone(scheduler, request)


def alone(scheduler: Any, request: Request) -> list[int]:
    engine: Any = scheduler.engine
    return engine.answer(request.input_ids, request.output_len)


def passes(scheduler: Any, request: Request) -> list[tuple[int, int]]:
    """Where each pass over a request began and where it ended."""
    engine: Any = scheduler.engine
    return [batch[request.uid] for batch in engine.batches if request.uid in batch]


@pytest.mark.parametrize("seed", range(3))
def test_every_request_gets_the_tokens_that_it_gets_alone(seed: int) -> None:
    rng = random.Random(seed)
    scheduler = make_scheduler(max_running_reqs=3)
    requests = []
    for uid in range(60):
        prompt = [rng.randrange(3, 9) for _ in range(rng.randint(1, 24))]
        requests.append(make_request(uid, prompt, rng.randint(1, 12)))
        scheduler.add(requests[-1])
        for _ in range(rng.randrange(5)):
            scheduler.step()
    run(scheduler, *requests)


@pytest.mark.parametrize("num_tokens", [1, 2, 9])
def test_every_token_but_the_last_is_computed_once(num_tokens: int) -> None:
    scheduler, request = make_scheduler(), make_request(7, [5, 3, 8, 8], num_tokens)
    scheduler.add(request)
    run(scheduler, request)
    decodes = [(n, n + 1) for n in range(4, 4 + num_tokens - 1)]
    assert passes(scheduler, request) == [(0, 4), *decodes]


def test_a_batch_is_as_large_as_there_are_rows() -> None:
    scheduler = make_scheduler(max_running_reqs=2)
    requests = [make_request(uid, [5 + uid], 3) for uid in range(5)]
    for request in requests:
        scheduler.add(request)
    begun = []
    for _ in range(9):
        scheduler.step()
        begun.append(sum(bool(request.token_ids) for request in requests))
    assert begun == [2] * 3 + [4] * 3 + [5] * 3
    run(scheduler, *requests)


def test_who_comes_later_waits_for_the_whole_batch() -> None:
    scheduler = make_scheduler()
    short, long, late = make_request(0, [5], 2), make_request(1, [6], 6), make_request(2, [7], 1)
    scheduler.add(short)
    scheduler.add(long)
    scheduler.step()
    scheduler.add(late)
    for _ in range(5):
        assert not late.token_ids
        scheduler.step()
    assert short.finish_reason == long.finish_reason == "length"
    run(scheduler, late)


def test_whoever_is_aborted_is_computed_no_more() -> None:
    scheduler = make_scheduler(max_running_reqs=2)
    running, waiting, stays = (make_request(uid, [5 + uid], 5) for uid in range(3))
    scheduler.add(running)
    scheduler.step()
    scheduler.add(waiting)
    scheduler.add(stays)
    scheduler.abort(running.uid)
    scheduler.abort(waiting.uid)
    assert len(running.token_ids) == 1
    run(scheduler, stays)
    assert (len(running.token_ids), len(waiting.token_ids)) == (1, 0)


def test_to_abort_what_has_ended_or_never_was_changes_nothing() -> None:
    scheduler = make_scheduler(max_running_reqs=1)
    first, second = make_request(0, [5], 2), make_request(1, [6], 2)
    scheduler.add(first)
    run(scheduler, first)
    scheduler.add(second)
    for uid in (first.uid, first.uid, 99):
        scheduler.abort(uid)
    run(scheduler, first, second)


def test_an_abort_in_the_middle_of_a_step_waits_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when the garbage collector closes a stream while another one's token is computed."""
    scheduler = make_scheduler(max_running_reqs=3)
    requests = [make_request(uid, [5 + uid], 5) for uid in range(3)]
    forward = scheduler.engine.forward_batch

    def forward_batch(batch: Batch) -> ForwardOutput:
        if requests[2].token_ids:
            scheduler.abort(1)
        return forward(batch)

    monkeypatch.setattr(scheduler.engine, "forward_batch", forward_batch)
    for request in requests:
        scheduler.add(request)
    run(scheduler, requests[0], requests[2])
    assert len(requests[1].token_ids) == 2


class Failure(Exception):
    """An exception that no code of the engine raises."""


@pytest.mark.parametrize("num_tokens", [0, 1, 3])
def test_a_step_that_fails_ends_its_batch_and_nobody_else(
    num_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = make_scheduler(max_running_reqs=2)
    lost, waits = [make_request(uid, [5 + uid], 4) for uid in range(2)], make_request(2, [9], 4)
    forward = scheduler.engine.forward_batch

    def forward_batch(batch: Batch) -> ForwardOutput:
        if any(req.uid == 1 for req in batch.reqs) and len(lost[1].token_ids) == num_tokens:
            raise Failure
        return forward(batch)

    monkeypatch.setattr(scheduler.engine, "forward_batch", forward_batch)
    for request in [*lost, waits]:
        scheduler.add(request)
    for _ in range(num_tokens):
        scheduler.step()
    with failing_step(Failure, *lost):
        scheduler.step()
    run(scheduler, waits)
    assert [request.finish_reason for request in lost] == ["error", "error"]
    full = [make_request(uid, [uid], 3) for uid in (20, 21)]  # both rows are free again
    for request in full:
        scheduler.add(request)
    scheduler.step()
    assert [len(request.token_ids) for request in full] == [1, 1]
    run(scheduler, *full)


def test_after_an_interrupt_at_any_line_the_next_batch_is_right() -> None:
    scheduler = make_scheduler(max_running_reqs=2)
    place: list[str] = ["not yet"]
    number = uid = 0
    while place:
        number += 1
        requests = [make_request(uid + n, [5 + n] * 3, 3) for n in range(6)]
        uid += 6
        try:
            with interrupt_at(number) as place:
                for request in requests[:3]:
                    scheduler.add(request)
                scheduler.abort(requests[2].uid)
                for _ in range(4):
                    scheduler.step()
        except KeyboardInterrupt:
            assert place
        for request in requests[:3]:  # as their caller does, however it has ended
            scheduler.abort(request.uid)
        for request in requests[3:]:
            scheduler.add(request)
        scheduler.step()
        assert [len(request.token_ids) for request in requests[3:]] == [1, 1, 0], place
        run(scheduler, *requests[3:])
    assert number > 100


# --- Text piece by piece: minisgl/tokenizer/detokenize.py ---------------------------------------


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> PreTrainedTokenizerBase:
    """A byte-level tokenizer, as Llama 3 has; it needs no model."""
    return load_tokenizer(make_tiny_model("llama", tmp_path_factory.mktemp("tokenizer")))


def byte_fallback_tokenizer() -> PreTrainedTokenizerBase:
    """Words with `▁` for a space, and byte tokens for everything else, as Llama 2 has."""
    words = ["▁", *"abcdefgh", "你", "▁a", "▁the", "ing", "!", "\ufffd"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    vocab = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab, [], unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def pieces_of(
    tokenizer: PreTrainedTokenizerBase, prompt: Sequence[int], ids: Sequence[int]
) -> list[str]:
    """The text of a stream, a piece per token; joined it must be that of `generate`."""
    detokenizer, last = Detokenizer(tokenizer, prompt), len(ids) - 1
    pieces = [detokenizer.push([token], finished=n == last) for n, token in enumerate(ids)]
    assert "".join(pieces) == Detokenizer(tokenizer, prompt).push(ids, finished=True)
    return pieces


def ids_of(tokenizer: PreTrainedTokenizerBase, *tokens: str) -> list[int]:
    ids = tokenizer.convert_tokens_to_ids(list(tokens))
    assert tokenizer.convert_ids_to_tokens(ids) == list(tokens), "all are in the vocabulary"
    return ids


def test_a_character_comes_with_the_last_of_its_bytes(byte_level: PreTrainedTokenizerBase) -> None:
    ids = byte_level("é")["input_ids"] + byte_level("a☕")["input_ids"]
    assert [len(byte_level(text)["input_ids"]) for text in ("é", "a", "☕")] == [2, 1, 3]
    assert pieces_of(byte_level, [300], ids) == ["", "é", "a", "", "", "☕"]


def test_bytes_that_make_no_character_come_when_that_is_certain(
    byte_level: PreTrainedTokenizerBase,
) -> None:
    first, second, _ = byte_level("☕")["input_ids"]
    [a] = byte_level("a")["input_ids"]
    assert pieces_of(byte_level, [300], [first, second, a]) == ["", "", "\ufffda"]
    assert pieces_of(byte_level, [300], [a, first]) == ["a", "\ufffd"]  # the end


def test_a_run_of_byte_tokens_is_one_text_and_comes_with_what_ends_it() -> None:
    tokenizer = byte_fallback_tokenizer()
    prompt = ids_of(tokenizer, "<s>", "▁a")
    # The line break is a character as soon as it is there; what follows makes all three U+FFFD.
    cut = ids_of(tokenizer, "<0x0A>", "<0xF0>", "<0x9F>")
    assert pieces_of(tokenizer, prompt, cut) == ["", "", "\ufffd\ufffd\ufffd"]
    smile = ids_of(tokenizer, "<0x0A>", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "ing", "!")
    assert pieces_of(tokenizer, prompt, smile) == ["", "", "", "", "", "\n😀ing", "!"]
    # A special token has no text: the run goes on after it.
    special = ids_of(tokenizer, "<0x41>", "</s>", "<0xFF>", "a")
    assert pieces_of(tokenizer, prompt, special) == ["", "", "", "\ufffd\ufffda"]


def test_six_characters_that_look_like_a_byte_are_text_where_they_mean_no_byte() -> None:
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "a": 1, "<0x0A>": 2}, "<unk>"))
    tokenizer.decoder = decoders.Fuse()
    plain = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")
    assert pieces_of(plain, [1], [2, 1]) == ["<0x0A>", "a"]


def test_the_first_word_keeps_the_space_before_it() -> None:
    tokenizer = byte_fallback_tokenizer()
    the, ing = ids_of(tokenizer, "▁the", "ing")
    assert decode(tokenizer, [the]) == "the"  # alone, it would lose it
    assert pieces_of(tokenizer, ids_of(tokenizer, "▁a"), [the, ing]) == [" the", "ing"]
    assert pieces_of(tokenizer, ids_of(tokenizer, "<s>"), [the, ing]) == ["the", "ing"]


def test_a_character_that_the_prompt_began_is_the_completion_s(
    byte_level: PreTrainedTokenizerBase,
) -> None:
    [a], [first, *rest] = byte_level("a")["input_ids"], byte_level("☕")["input_ids"]
    assert pieces_of(byte_level, [a, first], rest) == ["", "☕"]
    assert pieces_of(byte_level, [a, first], [rest[0], a]) == ["", "a"]  # it stays broken
    assert pieces_of(byte_level, byte_level("a\ufffd")["input_ids"], [a]) == ["a"]  # or was whole
    fallback = byte_fallback_tokenizer()
    prompt = ids_of(fallback, "▁a", "<0xE5>", "<0xA5>")
    assert pieces_of(fallback, prompt, ids_of(fallback, "<0xBD>", "!")) == ["", "好!"]


@pytest.mark.parametrize("kind", ["byte level", "byte fallback"])
def test_the_pieces_of_any_tokens_joined_are_the_text(
    kind: str, byte_level: PreTrainedTokenizerBase
) -> None:
    if kind == "byte level":
        tokenizer = byte_level
        likely = [token for text in ("é☕😀", CHINESE) for token in tokenizer(text)["input_ids"]]
    else:
        tokenizer = byte_fallback_tokenizer()
        likely = [3 + byte for byte in "\nA é☕😀".encode()] + [3 + 0xFF]
    rng, count = random.Random(0), len(tokenizer)

    def some_tokens(most: int) -> list[int]:
        length = rng.randint(1, most)
        return [rng.choice([rng.choice(likely), rng.randrange(count)]) for _ in range(length)]

    for _ in range(60):
        prompt, ids = some_tokens(5), some_tokens(30)
        pieces = pieces_of(tokenizer, prompt, ids)
        assert not any(piece.endswith("\ufffd") for piece in pieces[:-1])
        # The completion goes on where the prompt's text stops for certain.
        assert decode(tokenizer, [*prompt, *ids]).endswith("".join(pieces))


# --- The engine: minisgl/engine/ ----------------------------------------------------------------


class Watch:
    """Sees every batch, and that no token is computed twice.

    With `cuts`, the prompt of the one request is computed in several calls that end there.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cuts: Sequence[int] = ()) -> None:
        self._forward = Engine.forward_batch
        self._cuts = cuts
        self._places: dict[int, dict[int, int]] = {}  # uid -> position -> location of its KV
        self.calls: list[list[int]] = []  # the positions that each call computes
        monkeypatch.setattr(Engine, "forward_batch", lambda *args: self._in_parts(*args))

    @property
    def places(self) -> list[int]:
        """Where the KV of the one request's tokens lies, in order."""
        [places] = self._places.values()
        assert sorted(places) == list(range(len(places)))
        return [places[position] for position in range(len(places))]

    def _in_parts(self, engine: Engine, batch: Batch) -> ForwardOutput:
        if not self._cuts:
            return self._call(engine, batch)
        [req] = batch.reqs
        start, end = req.cached_len, req.device_len
        for cut in [cut for cut in self._cuts if start < cut < end]:
            req.device_len = cut
            self._call(engine, part_of(batch, req, start))
            req.cached_len = cut
        req.device_len = end
        output = self._call(engine, part_of(batch, req, start))
        req.cached_len = start
        return output

    def _call(self, engine: Engine, batch: Batch) -> ForwardOutput:
        positions, out_loc = batch.positions.tolist(), batch.out_loc.tolist()
        uids = [req.uid for req in batch.reqs for _ in range(req.extend_len)]
        for uid, position, location in zip(uids, positions, out_loc, strict=True):
            places = self._places.setdefault(uid, {})
            assert position not in places, f"position {position} is computed again"
            places[position] = location
        self.calls.append(positions)
        return self._forward(engine, batch)


def part_of(batch: Batch, req: Req, start: int) -> Batch:
    """The tokens of a batch from `req.cached_len` to `req.device_len`; the batch has `start` on."""
    rows = slice(req.cached_len - start, req.device_len - start)
    part = Batch([req], "decode" if req.extend_len == 1 else "prefill")
    part.input_ids, part.positions = batch.input_ids[rows], batch.positions[rows]
    part.out_loc = batch.out_loc[rows]
    part.logits_rows = torch.tensor([req.extend_len - 1])
    part.sampling_args = batch.sampling_args
    return part


def answers_of(llm: LLM, prompts: list[list[int]], max_tokens: int) -> list[list[int]]:
    return [output.token_ids for output in llm.generate(prompts, greedy(max_tokens))]


def lone_answer(folder: Path, prompt: list[int], max_tokens: int) -> list[int]:
    """The tokens of a request that has an engine to itself."""
    [answer] = answers_of(LLM(folder, max_seq_len=128), [prompt], max_tokens)
    return answer


def scores_seen(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """The logits that the sampler gets from now on, a tensor per call."""
    engine = importlib.import_module("minisgl.engine.engine")
    sample, seen = engine.sample, []

    def spy(logits: torch.Tensor, *args: Any) -> Any:
        seen.append(logits.clone())
        return sample(logits, *args)

    monkeypatch.setattr(engine, "sample", spy)
    return seen


def poison(llm: LLM) -> list[torch.Tensor]:
    """Fill every cache of every layer with NaN, which spreads to whatever reads it."""
    cache = llm.engine.ctx.kv_cache
    layers = range(llm.engine.model_config.num_layers)
    sides = [side(layer) for layer in layers for side in (cache.k_cache, cache.v_cache)]
    for side in sides:
        side.fill_(math.nan)
    return sides


@pytest.mark.parametrize(
    "cuts",
    [(1,), (11,), (5, 6), (4, 8), tuple(range(1, 12)), tuple(range(3, 12, 3))],
    ids=lambda cuts: "-".join(map(str, cuts)),
)
def test_any_split_of_a_prompt_gives_the_same_scores(
    cuts: tuple[int, ...], tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, prompt = tiny_model("llama3"), some_ids(3, 12)
    seen = scores_seen(monkeypatch)
    expected = lone_answer(folder, prompt, 12)
    whole = seen[:]
    seen.clear()
    watch = Watch(monkeypatch, cuts)
    assert lone_answer(folder, prompt, 12) == expected
    assert [call[-1] + 1 for call in watch.calls[: len(cuts) + 1]] == [*cuts, 12]
    for ours, theirs in zip(seen[len(cuts) :], whole, strict=True):
        assert (ours - theirs).abs().max() <= 1e-3


def test_a_split_changes_no_token_of_any_architecture(
    arch: str, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = some_ids(4, 40)
    whole = recomputed(tiny_model(arch), [prompt], 16)[0]
    Watch(monkeypatch, cuts=(1, 17, 30, 31))
    assert lone_answer(tiny_model(arch), prompt, 16) == whole


def test_the_cache_holds_the_keys_and_values_that_transformers_keeps(
    arch: str, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = some_ids(8, 20)
    watch = Watch(monkeypatch, cuts=(7,))
    llm = LLM(tiny_model(arch), max_seq_len=128)
    llm.generate(prompt, greedy(1))
    model = AutoModelForCausalLM.from_pretrained(tiny_model(arch), dtype=torch.float32).eval()
    with torch.inference_mode():
        past = model(torch.tensor([prompt]), use_cache=True).past_key_values
    cache, places = llm.engine.ctx.kv_cache, torch.tensor(watch.places)
    for layer, kept in enumerate(past.layers):
        for ours, theirs in ((cache.k_cache, kept.keys), (cache.v_cache, kept.values)):
            assert (ours(layer)[places] - theirs[0].transpose(0, 1)).abs().max() <= 1e-3


@pytest.mark.parametrize("max_tokens", [1, 2, 9])
def test_the_kv_of_the_last_token_is_never_computed(
    max_tokens: int, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = some_ids(7, 6)
    expected = recomputed(tiny_model("qwen3"), [prompt], max_tokens)
    watch = Watch(monkeypatch)
    llm = LLM(tiny_model("qwen3"), max_seq_len=128)
    caches = poison(llm)
    assert answers_of(llm, [prompt], max_tokens) == expected
    assert len(watch.places) == 6 + max_tokens - 1
    for cache in caches:
        written = (~cache.isnan()).any(dim=(1, 2)).nonzero().flatten().tolist()
        assert written == sorted(watch.places)


def test_nothing_of_an_earlier_request_is_read(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_model("qwen2")
    prompts = [some_ids(20 + n, length) for n, length in enumerate((50, 3, 20, 1))]
    expected = recomputed(folder, prompts, 9)
    Watch(monkeypatch)
    llm = LLM(folder, max_running_reqs=1, max_seq_len=64)
    poison(llm)
    assert [answers_of(llm, [prompt], 9)[0] for prompt in prompts] == expected


def test_the_cache_has_the_type_that_is_computed_with(tiny_model: TinyModel) -> None:
    sizes = {}
    for dtype in (torch.float32, torch.bfloat16):
        cache = LLM(tiny_model("llama"), dtype=dtype, max_seq_len=64).engine.ctx.kv_cache
        assert cache.k_cache(0).dtype == cache.v_cache(2).dtype == dtype
        sizes[dtype] = cache.k_cache(0).nbytes
    assert sizes[torch.float32] == 2 * sizes[torch.bfloat16]


@pytest.mark.usefixtures("tiny_model")  # a whole engine: it waits for the small tests
@pytest.mark.parametrize(("context", "longest"), [(100, 100), (8192, 8192), (20000, 8192)])
def test_the_longest_text_is_by_default_the_context_up_to_8192_tokens(
    context: int, longest: int, tmp_path: Path
) -> None:
    engine = LLM(make_tiny_model("llama", tmp_path, max_position_embeddings=context)).engine
    assert engine.max_seq_len == longest
    assert len(engine.ctx.kv_cache.k_cache(0)) == 4 * longest


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"max_running_reqs": 0}, "max_running_reqs must be an integer ≥ 1 .*, got 0"),
        ({"max_running_reqs": -3}, "max_running_reqs must be an integer ≥ 1 .*, got -3"),
        ({"max_running_reqs": 2.0}, "max_running_reqs must be an integer ≥ 1 .*, got 2.0"),
        ({"max_running_reqs": 10**12}, "max_running_reqs must be an integer ≥ 1 and ≤ 2147483647"),
        ({"max_seq_len": 1}, "max_seq_len must be an integer ≥ 2 .*, got 1"),
        ({"max_seq_len": True}, "max_seq_len must be an integer ≥ 2 .*, got True"),
        ({"max_seq_len": 10**12}, "max_seq_len must be an integer ≥ 2 and ≤ 2147483647"),
        ({"max_seq_len": 1025}, "max_seq_len .*1024.*1025"),
        (
            {"max_running_reqs": 2**31 - 1, "max_seq_len": 1024},
            "2147483647 .*1024.*max_running_reqs.*max_seq_len",
        ),
    ],
    ids=str,
)
def test_impossible_sizes_are_refused_with_rule_and_value(
    options: dict[str, Any], rule: str, tiny_model: TinyModel
) -> None:
    with pytest.raises(ValueError, match=rule):
        LLM(tiny_model("llama"), **options)


# --- Whole answers: minisgl/llm/llm.py ----------------------------------------------------------


@pytest.fixture
def fake_llm(tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch) -> Callable[..., LLM]:
    """`LLM` with a fake engine."""

    def make(**options: Any) -> LLM:
        monkeypatch.setattr("minisgl.llm.llm.Engine", FakeEngine)
        return LLM(tiny_model("llama"), **options)

    return make


def answer(llm: LLM, prompt: list[int], num_tokens: int) -> list[int]:
    """What a fake engine answers to a prompt alone."""
    engine: Any = llm.engine
    return engine.answer(prompt, num_tokens)


def num_passes(llm: LLM) -> int:
    engine: Any = llm.engine
    return len(engine.batches)


def opened(llm: LLM, prompt: Any, params: SamplingParams) -> Stream:
    return cast("Stream", llm.stream(prompt, params))


def tokens(stream: Iterator[StreamOutput]) -> list[int]:
    return [token for piece in stream for token in piece.token_ids]


def test_tokens_equal_those_of_recomputing_everything(
    arch: str, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    Watch(monkeypatch)
    llm = LLM(tiny_model(arch), max_seq_len=128)
    texts = [llm.tokenizer(text)["input_ids"] for text in TEXTS]
    prompts = [*texts, some_ids(0, 1), some_ids(1, 2), some_ids(2, 70)]
    expected = recomputed(tiny_model(arch), prompts, 24)
    assert answers_of(llm, prompts, 24) == expected


def flops_of_second_token(llm: LLM, prompt_len: int) -> tuple[int, int]:
    """What linear layers cost in the prefill and in the decode step after it."""
    counts = []
    stream = llm.stream(some_ids(prompt_len, prompt_len), greedy(2))
    for _ in range(2):
        with FlopCounterMode(display=False) as counter:
            next(stream)
        by_operator = counter.get_flop_counts()["Global"]
        counts.append(sum(n for name, n in by_operator.items() if "attention" not in str(name)))
    return counts[0], counts[1]


def test_linear_layers_cost_a_decode_step_the_same_after_any_past(tiny_model: TinyModel) -> None:
    llm = LLM(tiny_model("llama"))
    prefill_1, decode_1 = flops_of_second_token(llm, 1)
    prefill_256, decode_256 = flops_of_second_token(llm, 256)
    assert decode_256 == decode_1 == prefill_1 > 0
    assert prefill_256 > 100 * decode_256


def test_an_answer_ends_where_its_row_does(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, prompt = tiny_model("llama"), some_ids(1, 12)
    Watch(monkeypatch)
    llm = LLM(folder, max_seq_len=20)
    [output] = llm.generate(prompt, greedy(50))
    assert output.finish_reason == "length"
    assert output.token_ids == recomputed(folder, [prompt], 8)[0]
    with pytest.raises(ValueError, match=r"20 .*20"):
        llm.generate(some_ids(0, 20))
    with pytest.raises(ValueError, match="500"):
        llm.stream(some_ids(0, 500))  # at the call, not at the first token


def test_more_prompts_than_rows_are_answered_batch_by_batch(fake_llm: Callable[..., LLM]) -> None:
    llm = fake_llm(max_running_reqs=2, max_seq_len=64)
    prompts = [[5 + n] * (n + 1) for n in range(7)]
    expected = [answer(llm, prompt, 4) for prompt in prompts]
    assert answers_of(llm, prompts, 4) == expected


@pytest.mark.slow
def test_the_real_model_gives_the_same_tokens(
    real_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = LLM(real_model, max_seq_len=256)
    prompts = [llm.tokenizer(text)["input_ids"] for text in (CHINESE, "The capital of France is")]
    expected = recomputed(real_model, prompts, 8)
    with monkeypatch.context() as patch:
        Watch(patch)
        assert answers_of(llm, prompts, 8) == expected
    del llm
    Watch(monkeypatch, cuts=(1, 3))
    assert lone_answer(real_model, prompts[0], 8) == expected[0]


# --- Streams ------------------------------------------------------------------------------------


def test_the_pieces_of_a_stream_joined_are_the_text(arch: str, tiny_model: TinyModel) -> None:
    llm = LLM(tiny_model(arch), max_seq_len=256)
    # Random models write random bytes: characters cut in two, bytes that belong to none.
    prompts: list[Any] = [*TEXTS, CHINESE, [300], MESSAGES]
    for seed, prompt in enumerate(prompts):
        [whole] = llm.generate([prompt], sampled(seed))
        pieces = list(llm.stream(prompt, sampled(seed)))
        assert "".join(piece.text for piece in pieces) == whole.text
        assert [piece.token_ids for piece in pieces] == [[token] for token in whole.token_ids]
        assert [piece.finish_reason for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
        assert pieces[-1].finish_reason == whole.finish_reason
        assert not any(piece.text.endswith("\ufffd") for piece in pieces[:-1])


@pytest.mark.slow
def test_the_real_model_streams_chinese_without_broken_characters(real_model: Path) -> None:
    llm = LLM(real_model, max_seq_len=256)
    pieces = list(llm.stream(CHINESE, greedy(24)))
    [whole] = llm.generate(CHINESE, greedy(24))
    assert "".join(piece.text for piece in pieces) == whole.text
    assert not any(piece.text.endswith("\ufffd") for piece in pieces[:-1])


def test_a_stream_computes_one_token_when_it_is_asked_for_one(fake_llm: Callable[..., LLM]) -> None:
    llm = fake_llm(max_seq_len=64)
    stream = llm.stream([7, 8, 9], greedy(10))
    assert num_passes(llm) == 0
    pieces = [next(stream), next(stream)]
    assert num_passes(llm) == 2
    assert tokens(iter(pieces)) == answer(llm, [7, 8, 9], 2)


def test_an_eos_ends_a_stream_with_stop(tiny_model: TinyModel, tmp_path: Path) -> None:
    [expected] = answers_of(LLM(tiny_model("llama")), [[300, 301]], 12)
    eos = expected[6]
    end = expected.index(eos) + 1
    llm = LLM(make_tiny_model("llama", tmp_path, eos_token_id=[1, eos]))
    pieces = list(llm.stream([300, 301], SamplingParams(max_tokens=12)))
    assert tokens(iter(pieces)) == expected[:end]
    assert [piece.finish_reason for piece in pieces] == [None] * (end - 1) + ["stop"]


def test_a_stream_waits_until_the_batch_before_it_is_done(fake_llm: Callable[..., LLM]) -> None:
    """Nobody joins a batch that runs: who comes later computes what is left of it first."""
    llm = fake_llm(max_seq_len=64)
    first, second = opened(llm, [5, 6], greedy(6)), opened(llm, [7], greedy(4))
    begun = tokens(iter([next(first)]))
    begun_too = tokens(iter([next(second)]))
    assert num_passes(llm) == 6 + 1
    # What the first has been given meanwhile is there for its reader.
    assert begun + tokens(first) == answer(llm, [5, 6], 6)
    assert num_passes(llm) == 6 + 1
    assert begun_too + tokens(second) == answer(llm, [7], 4)


def test_generate_beside_an_open_stream_works_and_loses_none_of_its_tokens(
    fake_llm: Callable[..., LLM],
) -> None:
    llm = fake_llm(max_seq_len=64, max_running_reqs=1)
    stream = opened(llm, [5, 6], greedy(9))
    pieces = [next(stream), next(stream)]
    assert answers_of(llm, [[7], [8]], 3) == [answer(llm, [prompt], 3) for prompt in (7, 8)]
    pieces += stream
    assert [piece.token_ids for piece in pieces] == [[t] for t in answer(llm, [5, 6], 9)]
    assert [piece.finish_reason for piece in pieces] == [None] * 8 + ["length"]
    texts = [piece.text for piece in pieces]
    assert texts == [piece.text for piece in llm.stream([5, 6], greedy(9))]


@pytest.mark.parametrize("seed", range(3))
def test_interleaved_streams_do_not_disturb_each_other(seed: int, tiny_model: TinyModel) -> None:
    folder = tiny_model("qwen3")
    prompts = [some_ids(10 * seed + n, length) for n, length in enumerate((3, 30, 11))]
    llm = LLM(folder, max_running_reqs=3, max_seq_len=64)
    streams = {n: llm.stream(prompt, greedy(12)) for n, prompt in enumerate(prompts)}
    answers: dict[int, list[int]] = {n: [] for n in streams}
    rng = random.Random(seed)
    while streams:
        n = rng.choice(sorted(streams))
        piece = next(streams[n])
        answers[n] += piece.token_ids
        if piece.finish_reason:
            del streams[n]
    assert [answers[n] for n in range(3)] == recomputed(folder, prompts, 12)


@pytest.mark.parametrize("num_read", [0, 1, 2, 8])
def test_a_row_comes_back_when_a_stream_is_closed_anywhere(
    num_read: int, fake_llm: Callable[..., LLM]
) -> None:
    llm = fake_llm(max_running_reqs=1, max_seq_len=64)
    for n in range(3):
        stream = opened(llm, [5 + n, 6], greedy(8))
        for _ in range(num_read):
            next(stream)
        stream.close()
    before = num_passes(llm)
    assert answers_of(llm, [[9]], 5) == [answer(llm, [9], 5)]
    assert num_passes(llm) == before + 5  # nothing is left to compute of those


def test_a_stream_that_is_dropped_while_another_computes_stops_nothing(
    fake_llm: Callable[..., LLM], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The garbage collector may close one at any line, while the engine is at work too."""
    llm = fake_llm(max_seq_len=64)
    dropped, stream = opened(llm, [5], greedy(9)), opened(llm, [6], greedy(4))
    next(dropped)
    forward = llm.engine.forward_batch

    def forward_batch(batch: Batch) -> ForwardOutput:
        dropped.close()
        return forward(batch)

    monkeypatch.setattr(llm.engine, "forward_batch", forward_batch)
    assert tokens(stream) == answer(llm, [6], 4)


def test_a_stream_keeps_the_parameters_that_it_was_given(tiny_model: TinyModel) -> None:
    llm = LLM(tiny_model("llama"), max_seq_len=64)
    params = sampled(1, max_tokens=12)
    given = deepcopy(params)
    [expected] = llm.generate([5, 6], params)
    stream = llm.stream([5, 6], params)
    assert params == given
    params.seed, params.temperature = 2, math.nan
    assert tokens(stream) == expected.token_ids


@pytest.mark.parametrize("bad", [None, 5, b"text", {"role": "user"}, ["text"], [5, "text"], 1.5])
def test_a_stream_takes_one_prompt_and_refuses_at_the_call(
    bad: Any, fake_llm: Callable[..., LLM]
) -> None:
    with pytest.raises(ValueError, match="a prompt must be a string, a list of token ids or"):
        fake_llm().stream(bad)


def test_bad_parameters_of_a_stream_are_refused_at_the_call(fake_llm: Callable[..., LLM]) -> None:
    llm = fake_llm()
    with pytest.raises(ValueError, match="max_tokens must be an integer ≥ 1, got 0"):
        llm.stream([5], SamplingParams(max_tokens=0))
    wrong: Any = [SamplingParams(), SamplingParams()]
    with pytest.raises(ValueError, match="SamplingParams"):
        llm.stream([5], wrong)


LEAVES_A_STREAM_OPEN = """
from minisgl.core import SamplingParams
from minisgl.llm import LLM

llm = LLM({folder!r}, max_seq_len=64)
stream = llm.stream([5, 6, 7], SamplingParams(max_tokens=9, ignore_eos=True))
print(len(next(stream).token_ids))
"""


def test_a_program_may_end_with_an_open_stream(tiny_model: TinyModel) -> None:
    """Its generator is closed while the interpreter ends, when torch aborts at any operation."""
    program = LEAVES_A_STREAM_OPEN.format(folder=str(tiny_model("llama")))
    env = {**os.environ, "PYTHONPATH": str(Path(minisgl.__file__).parents[1])}
    ended = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "1\n"), ended.stderr


def test_a_closed_llm_gives_its_memory_back_though_a_stream_is_open(tiny_model: TinyModel) -> None:
    llm = LLM(tiny_model("llama"), max_seq_len=64)
    stream = llm.stream([5, 6], greedy(4))
    next(stream)
    model = weakref.ref(llm.engine.model)
    llm.close()
    assert model() is None
    for ask in (lambda: next(stream), lambda: llm.stream([5])):
        with pytest.raises(RuntimeError, match="closed"):
            ask()


# --- Failures, interrupts, threads --------------------------------------------------------------


@pytest.mark.parametrize("failing", [1, 3])
def test_who_was_lost_with_another_s_step_is_told_to_ask_again(
    failing: int, fake_llm: Callable[..., LLM], monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = fake_llm(max_running_reqs=2, max_seq_len=64)
    stream = llm.stream([5], greedy(8))
    next(stream)
    forward, calls = llm.engine.forward_batch, iter(range(1, 100))

    def forward_batch(batch: Batch) -> ForwardOutput:
        if next(calls) == failing:
            raise MemoryError("no room for the activations")
        return forward(batch)

    with monkeypatch.context() as patch:
        patch.setattr(llm.engine, "forward_batch", forward_batch)
        with pytest.raises(MemoryError, match="activations"):
            llm.generate([6], greedy(8))
    assert answers_of(llm, [[6], [7]], 8) == [answer(llm, [6], 8), answer(llm, [7], 8)]
    with pytest.raises(RuntimeError, match=r"\b0\b"):
        tokens(stream)


def test_after_an_interrupt_at_any_line_of_generate_the_next_call_is_right(
    fake_llm: Callable[..., LLM],
) -> None:
    llm = fake_llm(max_running_reqs=2, max_seq_len=24)
    prompts = [[5, 6], [7, 8, 9], [5, 6]]
    expected = [answer(llm, prompt, 3) for prompt in prompts]
    place: list[str] = ["not yet"]
    number = -6
    while place:
        number += 7  # every seventh line: all lines of the scheduler have their own test
        try:
            with interrupt_at(number) as place:
                assert answers_of(llm, prompts, 3) == expected
        except KeyboardInterrupt:
            assert place
        assert answers_of(llm, prompts, 3) == expected, place
        before = num_passes(llm)
        assert answers_of(llm, prompts[:2], 1) == [ids[:1] for ids in expected[:2]], place
        assert num_passes(llm) <= before + 2, f"computed for nobody after {place}"
    assert number > 100


def test_after_an_interrupt_at_any_line_of_a_pass_the_next_one_is_right(tmp_path: Path) -> None:
    """Even of the lines that clean up after it: what they leave is in nobody's way."""
    folder = make_tiny_model("llama", tmp_path, num_hidden_layers=1)
    llm = LLM(folder, max_seq_len=16, max_running_reqs=1)
    expected = answers_of(llm, [[5, 6]], 1)
    place: list[str] = ["not yet"]
    number = 0
    while place:
        number += 1
        with suppress(KeyboardInterrupt), interrupt_at(number) as place:
            answers_of(llm, [[5, 6]], 1)
        assert answers_of(llm, [[5, 6]], 1) == expected, place
    assert number > 100


def test_an_interrupt_of_one_caller_gives_no_other_a_wrong_token(
    fake_llm: Callable[..., LLM],
) -> None:
    llm = fake_llm(max_running_reqs=2, max_seq_len=24)
    place: list[str] = ["not yet"]
    number, outcomes = -4, set()
    while place:
        number += 5
        stream = opened(llm, [5, 6, 7], greedy(6))
        received = tokens(iter([next(stream)]))
        try:
            with interrupt_at(number) as place:
                tokens(opened(llm, [8], greedy(3)))
        except KeyboardInterrupt:
            assert place
        try:
            received += tokens(stream)
            assert received == answer(llm, [5, 6, 7], 6), place
            outcomes.add("right")
        except RuntimeError as error:
            assert "ask again" in str(error)
            outcomes.add("lost")
        assert answers_of(llm, [[5], [6]], 2) == [answer(llm, [5], 2), answer(llm, [6], 2)], place
    assert outcomes == {"right", "lost"}


def test_threads_may_share_an_llm(fake_llm: Callable[..., LLM]) -> None:
    llm = fake_llm(max_running_reqs=3, max_seq_len=64)
    start = threading.Barrier(4)

    def ask(thread: int) -> bool:
        start.wait(timeout=10)
        right = True
        for n in range(10):
            prompts = [[5 + thread, 5 + n], [6 + n] * 3]
            expected = [answer(llm, prompt, 6) for prompt in prompts]
            right &= answers_of(llm, prompts, 6) == expected
            right &= tokens(llm.stream(prompts[0], greedy(6))) == expected[0]
        return right

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask, range(4))) == [True] * 4


def test_a_lock_that_tqdm_left_taken_stops_no_other_thread(fake_llm: Callable[..., LLM]) -> None:
    """A Ctrl-C while tqdm makes a bar leaves its lock taken."""
    llm = fake_llm(max_seq_len=64)
    with ThreadPoolExecutor(1) as threads, tqdm.get_lock():
        answered = threads.submit(answers_of, llm, [[5]], 2)
        assert answered.result(timeout=30) == [answer(llm, [5], 2)]


def test_two_llms_may_compute_in_a_thread_each(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each inside a forward pass while the other is."""
    folders = [tiny_model("llama"), tiny_model("qwen3")]
    expected = [recomputed(folder, [[5, 6, 7]], 8)[0] for folder in folders]
    llms = [LLM(folder, max_seq_len=64) for folder in folders]
    meet = threading.Barrier(2)
    for llm in llms:
        forward = llm.engine.model.forward

        def together(forward: Callable[[], torch.Tensor] = forward) -> torch.Tensor:
            meet.wait(timeout=30)
            logits = forward()
            meet.wait(timeout=30)
            return logits

        monkeypatch.setattr(llm.engine.model, "forward", together)
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda llm: answers_of(llm, [[5, 6, 7]], 8)[0], llms))
    assert answers == expected
