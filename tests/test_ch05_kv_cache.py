"""Chapter 5: keys and values of past tokens are computed once, kept, and no token changes.

The oracle computes everything again for each token: transformers without its cache. What the
engine computes is watched where it has to pass, at `Engine.forward_batch`.
"""

import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM

import minisgl
from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.engine import Engine, ForwardOutput
from minisgl.llm import LLM, StreamOutput
from tiny_models import ARCHITECTURES, make_tiny_model

TinyModel = Callable[[str], Path]

TEXTS = ["The engine stores keys and values", "请求等待,然后被调度", "def forward(self"]
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


def lone_answer(folder: Path, prompt: list[int], max_tokens: int) -> list[int]:
    """The tokens of a request that has an engine to itself."""
    return LLM(folder).generate(prompt, greedy(max_tokens))[0].token_ids


def tokens(stream: Iterator[StreamOutput]) -> list[int]:
    return [token for piece in stream for token in piece.token_ids]


class Watch:
    """Sees every batch; with `cuts`, a prompt is computed in several calls that end there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cuts: Sequence[int] = ()) -> None:
        self._forward = Engine.forward_batch
        self._cuts = cuts
        self.calls: list[list[int]] = []  # the positions that each call computes
        self.places: dict[int, int] = {}  # position -> location of its KV
        monkeypatch.setattr(Engine, "forward_batch", lambda *args: self._in_parts(*args))

    def _in_parts(self, engine: Engine, batch: Batch) -> ForwardOutput:
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
        positions = batch.positions.tolist()
        self.calls.append(positions)
        self.places |= dict(zip(positions, batch.out_loc.tolist(), strict=True))
        return self._forward(engine, batch)


def part_of(batch: Batch, req: Req, start: int) -> Batch:
    """The tokens of a batch from `req.cached_len` to `req.device_len`; the batch has `start` on."""
    rows = slice(req.cached_len - start, req.device_len - start)
    part = Batch([req], "decode" if req.extend_len == 1 else "prefill")
    part.input_ids, part.positions = batch.input_ids[rows], batch.positions[rows]
    part.out_loc = batch.out_loc[rows]
    return part


def poison(llm: LLM) -> Iterator[torch.Tensor]:
    """Fill every cache of every layer with NaN, which spreads to whatever reads it."""
    cache = llm.engine.ctx.kv_cache
    for layer in range(llm.engine.model_config.num_layers):
        for side in (cache.k_cache(layer), cache.v_cache(layer)):
            side.fill_(math.nan)
            yield side


# --- The same tokens --------------------------------------------------------------------------


def test_tokens_equal_those_of_recomputing_everything(arch: str, tiny_model: TinyModel) -> None:
    llm = LLM(tiny_model(arch))
    texts = [llm.tokenizer(text)["input_ids"] for text in TEXTS]
    prompts = [*texts, some_ids(0, 1), some_ids(1, 2), some_ids(2, 70)]
    outputs = llm.generate(prompts, greedy(24))
    expected = recomputed(tiny_model(arch), prompts, 24)
    assert [output.token_ids for output in outputs] == expected


@pytest.mark.parametrize(
    "cuts",
    [(1,), (11,), (5, 6), (4, 8), tuple(range(1, 12)), tuple(range(3, 12, 3))],
    ids=lambda cuts: "-".join(map(str, cuts)),
)
def test_any_split_of_a_prompt_gives_the_same_tokens(
    cuts: tuple[int, ...], tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt, params = some_ids(3, 12), SamplingParams(max_tokens=12, ignore_eos=True, logprobs=0)
    [whole] = LLM(tiny_model("llama3")).generate(prompt, params)
    watch = Watch(monkeypatch, cuts)
    [split] = LLM(tiny_model("llama3")).generate(prompt, params)
    assert [call[-1] + 1 for call in watch.calls[: len(cuts) + 1]] == [*cuts, 12]
    assert split.token_ids == whole.token_ids
    assert split.logprobs and whole.logprobs
    for ours, theirs in zip(split.logprobs, whole.logprobs, strict=True):
        assert ours.logprob == pytest.approx(theirs.logprob, abs=1e-4)


def test_a_split_changes_no_token_of_any_architecture(
    arch: str, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = some_ids(4, 40)
    whole = lone_answer(tiny_model(arch), prompt, 16)
    Watch(monkeypatch, cuts=(1, 17, 30, 31))
    assert lone_answer(tiny_model(arch), prompt, 16) == whole


def test_sampling_does_not_see_how_a_prompt_was_split(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = SamplingParams(
        temperature=1.5, top_k=20, seed=7, max_tokens=16, ignore_eos=True, frequency_penalty=0.5
    )
    [whole] = LLM(tiny_model("qwen2")).generate(some_ids(5, 9), params)
    Watch(monkeypatch, cuts=(2, 3, 8))
    [split] = LLM(tiny_model("qwen2")).generate(some_ids(5, 9), params)
    assert split.token_ids == whole.token_ids


@pytest.mark.slow
def test_the_real_model_gives_the_same_tokens(
    real_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = LLM(real_model, max_seq_len=256)
    texts = ["请解释什么是 KV Cache？", "The capital of France is"]
    prompts = [llm.tokenizer(text)["input_ids"] for text in texts]
    expected = recomputed(real_model, prompts, 8)
    assert [output.token_ids for output in llm.generate(prompts, greedy(8))] == expected
    del llm
    Watch(monkeypatch, cuts=(1, 3))
    assert lone_answer(real_model, prompts[0], 8) == expected[0]


# --- Computed once ----------------------------------------------------------------------------


def test_every_token_but_the_last_enters_the_model_exactly_once(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch)
    lone_answer(tiny_model("mistral"), some_ids(6, 5), 4)
    assert watch.calls == [[0, 1, 2, 3, 4], [5], [6], [7]]


def test_a_stream_computes_one_token_when_it_is_asked_for_one(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch)
    stream = LLM(tiny_model("llama")).stream(some_ids(6, 3), greedy(10))
    assert watch.calls == []
    next(stream), next(stream)
    assert watch.calls == [[0, 1, 2], [3]]


@pytest.mark.parametrize("max_tokens", [1, 2, 9])
def test_the_kv_of_the_last_token_is_never_computed(
    max_tokens: int, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = some_ids(7, 6)
    expected = lone_answer(tiny_model("qwen3"), prompt, max_tokens)
    watch = Watch(monkeypatch)
    llm = LLM(tiny_model("qwen3"))
    caches = list(poison(llm))
    assert llm.generate(prompt, greedy(max_tokens))[0].token_ids == expected
    computed = [watch.places[position] for position in range(6 + max_tokens - 1)]
    for cache in caches:
        written = (~cache.isnan()).any(dim=(1, 2)).nonzero().flatten().tolist()
        assert written == sorted(computed)


def test_the_cache_holds_the_keys_and_values_that_transformers_keeps(
    arch: str, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = some_ids(8, 20)
    watch = Watch(monkeypatch, cuts=(7,))
    llm = LLM(tiny_model(arch))
    llm.generate(prompt, greedy(1))
    model = AutoModelForCausalLM.from_pretrained(tiny_model(arch), dtype=torch.float32).eval()
    with torch.inference_mode():
        past = model(torch.tensor([prompt]), use_cache=True).past_key_values
    places = torch.tensor([watch.places[position] for position in range(20)])
    cache = llm.engine.ctx.kv_cache
    for layer, kept in enumerate(past.layers):
        for ours, theirs in ((cache.k_cache, kept.keys), (cache.v_cache, kept.values)):
            assert (ours(layer)[places] - theirs[0].transpose(0, 1)).abs().max() <= 1e-3


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


# --- Rows -------------------------------------------------------------------------------------


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
    assert [answers[n] for n in range(3)] == [lone_answer(folder, p, 12) for p in prompts]


def test_one_request_too_many_is_refused_and_the_others_go_on(tiny_model: TinyModel) -> None:
    folder, prompts = tiny_model("llama"), [some_ids(n, 8) for n in range(3)]
    llm = LLM(folder, max_running_reqs=2, max_seq_len=64)
    first, second, third = (llm.stream(prompt, greedy(6)) for prompt in prompts)
    begun = [tokens(iter([next(stream)])) for stream in (first, second)]
    with pytest.raises(RuntimeError, match="read or close a stream that is still open"):
        next(third)
    with pytest.raises(RuntimeError, match="read or close a stream that is still open"):
        llm.generate(prompts[2], greedy(6))
    answers = [begun[0] + tokens(first), begun[1] + tokens(second)]
    assert answers == [lone_answer(folder, prompt, 6) for prompt in prompts[:2]]
    assert llm.generate(prompts[2], greedy(6))[0].token_ids == lone_answer(folder, prompts[2], 6)


def test_a_stream_takes_a_row_only_when_it_is_read(tiny_model: TinyModel) -> None:
    llm = LLM(tiny_model("llama"), max_running_reqs=1, max_seq_len=64)
    waiting = [llm.stream(some_ids(n, 8), greedy(3)) for n in range(3)]
    assert [len(tokens(stream)) for stream in waiting] == [3, 3, 3]


def test_a_row_comes_back_when_a_stream_is_closed_half_way(tiny_model: TinyModel) -> None:
    folder = tiny_model("mistral")
    llm = LLM(folder, max_running_reqs=1, max_seq_len=64)
    for n in range(3):
        stream = llm.stream(some_ids(n, 40), greedy(20))
        next(stream), next(stream)
        stream.close()  # type: ignore[attr-defined]  # a generator
    prompt = some_ids(9, 10)
    assert llm.generate(prompt, greedy(8))[0].token_ids == lone_answer(folder, prompt, 8)


@pytest.mark.parametrize("failing_call", [1, 3])
def test_a_row_comes_back_when_a_request_fails(
    failing_call: int, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, prompt = tiny_model("mistral"), some_ids(11, 10)
    llm = LLM(folder, max_running_reqs=2, max_seq_len=64)
    beside = llm.stream(some_ids(12, 10), greedy(8))
    begun = next(beside).token_ids
    forward, calls = Engine.forward_batch, iter(range(1, 100))

    def fail(engine: Engine, batch: Batch) -> ForwardOutput:
        if next(calls) == failing_call:
            raise MemoryError("no room for the activations")
        return forward(engine, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "forward_batch", fail)
        with pytest.raises(MemoryError, match="activations"):
            llm.generate(prompt, greedy(8))
    assert llm.generate(prompt, greedy(8))[0].token_ids == lone_answer(folder, prompt, 8)
    assert begun + tokens(beside) == lone_answer(folder, some_ids(12, 10), 8)


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


def test_nothing_of_an_earlier_request_is_read(tiny_model: TinyModel) -> None:
    folder = tiny_model("qwen2")
    llm = LLM(folder, max_running_reqs=1, max_seq_len=64)
    list(poison(llm))
    for n, length in enumerate((50, 3, 20, 1)):
        prompt = some_ids(20 + n, length)
        assert llm.generate(prompt, greedy(9))[0].token_ids == lone_answer(folder, prompt, 9)


# --- Room -------------------------------------------------------------------------------------


def test_a_row_is_reserved_for_the_longest_text_and_used_by_what_was_computed(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = LLM(tiny_model("qwen3"), max_running_reqs=3, max_seq_len=100)
    # Keys and values, of 3 layers, 2 heads and 32 dimensions, in fp32.
    bytes_per_token = 2 * 3 * 2 * 32 * 4
    cache: Any = llm.engine.ctx.kv_cache
    assert cache.num_bytes == 3 * 100 * bytes_per_token
    caches = list(poison(llm))
    llm.generate(some_ids(0, 6), greedy(5))
    used = sum(cache.nbytes - cache.isnan().sum().item() * 4 for cache in caches)
    assert used == (6 + 5 - 1) * bytes_per_token


def test_each_row_has_places_of_its_own(tiny_model: TinyModel) -> None:
    cache: Any = LLM(tiny_model("llama"), max_running_reqs=3, max_seq_len=10).engine.ctx.kv_cache
    places = [range(1000)[cache.span(row, 10)] for row in range(3)]
    assert sorted(place for row in places for place in row) == list(range(30))
    assert len(cache.k_cache(0)) == len(cache.v_cache(0)) == 30
    assert all(range(1000)[cache.span(row, 4)] == places[row][:4] for row in range(3))


def test_the_cache_has_the_type_that_is_computed_with(tiny_model: TinyModel) -> None:
    sizes = {}
    for dtype in (torch.float32, torch.bfloat16):
        cache = LLM(tiny_model("llama"), dtype=dtype, max_seq_len=64).engine.ctx.kv_cache
        assert cache.k_cache(0).dtype == cache.v_cache(2).dtype == dtype
        sizes[dtype] = cache.k_cache(0).nbytes
    assert sizes[torch.float32] == 2 * sizes[torch.bfloat16]


@pytest.mark.parametrize(("context", "longest"), [(100, 100), (8192, 8192), (20000, 8192)])
def test_the_longest_text_is_by_default_the_context_up_to_8192_tokens(
    context: int, longest: int, tmp_path: Path
) -> None:
    folder = make_tiny_model("llama", tmp_path, max_position_embeddings=context)
    assert LLM(folder).engine.max_seq_len == longest


def test_a_prompt_that_leaves_no_room_for_an_answer_is_refused(tiny_model: TinyModel) -> None:
    llm = LLM(tiny_model("llama"), max_seq_len=20)
    with pytest.raises(ValueError, match=r"shorter than max_seq_len \(20 tokens\).* has 20"):
        llm.generate(some_ids(0, 20))
    with pytest.raises(ValueError, match="has 500: shorten it"):
        llm.stream(some_ids(0, 500))  # at the call, not at the first token
    [longest] = llm.generate(some_ids(0, 19))
    assert (len(longest.token_ids), longest.finish_reason) == (1, "length")


def test_an_answer_ends_where_its_row_does(tiny_model: TinyModel) -> None:
    folder, prompt = tiny_model("llama"), some_ids(1, 12)
    [output] = LLM(folder, max_seq_len=20).generate(prompt, greedy(50))
    assert output.finish_reason == "length"
    assert output.token_ids == lone_answer(folder, prompt, 50)[:8]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"max_running_reqs": 0}, "max_running_reqs must be an integer of at least 1, got 0"),
        ({"max_running_reqs": -3}, "max_running_reqs must be an integer of at least 1, got -3"),
        ({"max_seq_len": 1}, "max_seq_len must be an integer of at least 2.* got 1"),
        ({"max_seq_len": 0}, "max_seq_len must be an integer of at least 2.* got 0"),
        ({"max_seq_len": 1025}, "max_seq_len must be at most .*1024.* got 1025"),
    ],
    ids=str,
)
def test_impossible_sizes_are_refused_with_rule_and_value(
    options: dict[str, Any], rule: str, tiny_model: TinyModel
) -> None:
    with pytest.raises(ValueError, match=rule):
        LLM(tiny_model("llama"), **options)
