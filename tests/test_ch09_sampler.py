"""Chapter 9: the tokens of a batch: exact filters, and rows that ignore their neighbours."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, RepetitionPenaltyLogitsProcessor

from device_reads import DEVICE, DeviceReads
from minisgl.core import Req, SamplingParams
from minisgl.engine.logprobs import token_logprobs
from minisgl.engine.randomness import mix, uniform
from minisgl.engine.sample import (
    NO_TOKEN,
    SamplingArgs,
    apply_penalty,
    crossing_prob,
    draw,
    filtered_probs,
    make_args,
    make_filters,
    sample,
    top_k_threshold,
    top_p_threshold,
)
from minisgl.llm import LLM

TinyModel = Callable[[str], Path]

NO_HANDLE: Any = None
REAL_VOCAB = 49152
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def make_req(
    params: SamplingParams,
    prompt: Sequence[int] = (0,),
    generated: Sequence[int] = (),
    uid: int = 0,
) -> Req:
    """A request whose next token follows `prompt` and `generated`."""
    req = Req(
        input_ids=torch.tensor(prompt, dtype=torch.int32),
        table_idx=0,
        cached_len=0,
        output_len=len(generated) + 1,
        uid=uid,
        sampling_params=params,
        cache_handle=NO_HANDLE,
    )
    req.append_host(torch.tensor(generated, dtype=torch.int32))
    req.device_len += len(generated)
    return req


def pool_of(reqs: Sequence[Req]) -> torch.Tensor:
    """The token pool of a scheduler; each request gets a row. What nobody wrote is no token."""
    longest = max(req.device_len for req in reqs)
    pool = torch.full((len(reqs), longest + 3), REAL_VOCAB - 1, dtype=torch.int32)
    for row, req in enumerate(reqs):
        req.table_idx = len(reqs) - 1 - row
        pool[req.table_idx, : req.device_len] = req.input_ids
    return pool


def args_of(reqs: list[Req], vocab_size: int, seed: int = 0) -> SamplingArgs:
    return make_args(reqs, pool_of(reqs), vocab_size, seed)


def choose(logits: torch.Tensor, reqs: list[Req], seed: int = 0) -> list[int]:
    tokens = sample(logits, args_of(reqs, logits.shape[-1], seed))
    assert tokens.dtype == torch.int32
    return tokens.tolist()


def kept(logits: torch.Tensor, *params: SamplingParams) -> torch.Tensor:
    """What the filters leave of each row's probabilities."""
    uniforms = [0.0] * len(params)
    return filtered_probs(logits, make_filters([*params], uniforms, logits.shape[-1], CPU))


def column(*values: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)[:, None]


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# --- Parameters -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rule", "values"),
    [
        ("min_p", "a finite number ≥ 0 and ≤ 1", [-0.1, 1.1, math.nan, False, None, "0"]),
        ("repetition_penalty", "a finite number > 0", [0, -1.0, math.inf, math.nan, True, None]),
        ("presence_penalty", "a finite number ≥ -2 and ≤ 2", [-2.1, 2.1, math.nan, None]),
        ("frequency_penalty", "a finite number ≥ -2 and ≤ 2", [-2.1, 2.1, math.inf, None]),
        ("logprobs", "an integer ≥ 0 and ≤ 20", [-1, 21, 1.0, True, "3"]),
    ],
)
def test_a_bad_parameter_is_refused_with_its_rule_and_value(
    name: str, rule: str, values: list[Any]
) -> None:
    for value in values:
        with pytest.raises(ValueError) as refused:
            SamplingParams(**{name: value}).validate()
        assert str(refused.value) == f"{name} must be {rule}, got {value!r}"


@pytest.mark.guard
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"temperature": 2.5, "top_k": 0, "top_p": 1, "min_p": 1, "seed": -(2**63)},
        {"top_k": 10**9, "top_p": 1e-9, "max_tokens": 1, "min_p": 0, "logprobs": 0},
        {"repetition_penalty": 0.1, "presence_penalty": -2, "frequency_penalty": 2},
        {"repetition_penalty": 5, "presence_penalty": 2, "frequency_penalty": -2, "logprobs": 20},
    ],
)
def test_parameters_at_their_edges_are_accepted(params: dict[str, Any]) -> None:
    SamplingParams(**params).validate()


# --- Randomness -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "index", "bits"),
    [
        (0, 0, 0xA706DD2F4D197E6F),
        (0, 1, 0x2A98F501AF37E97F),
        (1, 0, 0x5E41AB087439611E),
        (42, 7, 0xFE2F108189F83DF6),
        (-1, 0, 0x5DC20AA7B2A27137),
        (2**64 - 1, 0, 0x5DC20AA7B2A27137),
        (2**70, 3, 0xF9BF111E3B410C7A),
    ],
)
def test_the_hash_never_changes(seed: int, index: int, bits: int) -> None:
    assert mix(seed, index) == bits
    assert uniform(seed, index) == (bits >> 24) / 2**40


def test_uniform_is_at_least_0_and_below_1() -> None:
    numbers = [uniform(seed, index) for seed in range(-50, 50) for index in range(50)]
    assert all(0 <= number < 1 for number in numbers)
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize(
    "number",
    [
        lambda i: uniform(0, i),
        lambda i: uniform(i, 0),
        lambda i: uniform(i << 32, 7),
        lambda i: uniform(mix(0, i), 0),
    ],
    ids=["index", "seed", "high-bits", "derived-seed"],
)
def test_the_numbers_are_uniform(number: Callable[[int], float]) -> None:
    counts = [0] * 64
    for i in range(10_000):
        counts[int(64 * number(i))] += 1
    assert_fits(counts, [1 / 64] * 64)


@pytest.mark.parametrize(
    "pair",
    [
        lambda i: (uniform(3, i), uniform(3, i + 1)),
        lambda i: (uniform(i, 3), uniform(i + 1, 3)),
        lambda i: (uniform(i, 4), uniform(i + 1, 3)),
        lambda i: (uniform(i, 0), uniform(i, 1)),
    ],
    ids=["next-token", "next-seed", "same-sum", "first-two-tokens"],
)
def test_neighbouring_numbers_are_independent(pair: Callable[[int], tuple[float, float]]) -> None:
    counts = [0] * 64
    for i in range(10_000):
        first, second = pair(i)
        counts[8 * int(8 * first) + int(8 * second)] += 1
    assert_fits(counts, [1 / 64] * 64)


# --- References that leave nothing out and save nothing ---------------------------------------


def naive_probs(row: Sequence[float], params: SamplingParams, slack: float = 0.0) -> list[float]:
    """One row by the book: sort, top-k, then top-p with the token that crosses, then min-p.

    `slack` > 0 keeps a little more than asked for, < 0 a little less: the package computes in
    fp32, and its sums may fall on the other side of a border.
    """
    best = max(row)
    probs = [math.exp((score - best) / params.temperature) for score in row]
    probs = [p / math.fsum(probs) for p in probs]
    if params.top_k > 0:
        kth = sorted(probs, reverse=True)[min(params.top_k, len(probs)) - 1]
        probs = [p if p >= kth else 0.0 for p in probs]
    if params.top_p < 1:
        wanted, reached = params.top_p * (1 + slack) * math.fsum(probs), 0.0
        for crossing in sorted(probs, reverse=True):
            reached += crossing
            if reached >= wanted:
                break
        probs = [p if p >= crossing else 0.0 for p in probs]
    least = max(probs) * params.min_p * (1 - slack)
    return [p if p >= least else 0.0 for p in probs]


def naive_penalties(
    row: Sequence[float], prompt: Sequence[int], generated: Sequence[int], params: SamplingParams
) -> list[float]:
    result = list(row)
    for token in {*prompt, *generated}:
        factor = params.repetition_penalty
        result[token] = result[token] / factor if result[token] > 0 else result[token] * factor
    for token, count in Counter(generated).items():
        result[token] -= params.presence_penalty + params.frequency_penalty * count
    return result


def assert_fits(counts: Sequence[int], probs: Sequence[float]) -> None:
    """A chi-square test that a right sampler fails once in some ten thousand choices of seeds."""
    total = sum(counts)
    assert not any(n for n, p in zip(counts, probs, strict=True) if p == 0)
    expected = [(n, p * total) for n, p in zip(counts, probs, strict=True) if p > 0]
    assert all(e >= 5 for _, e in expected), "too few draws for this test"
    statistic = sum((n - e) ** 2 / e for n, e in expected)
    freedom = len(expected) - 1
    # Wilson and Hilferty's approximation of the quantile at 3.8 standard deviations.
    spread = 2 / (9 * freedom)
    assert statistic < freedom * (1 - spread + 3.8 * math.sqrt(spread)) ** 3


# --- Thresholds -------------------------------------------------------------------------------

# Rows of few different numbers, as shares of a power of two: ties are common and sums are exact.
ROWS = st.lists(st.integers(0, 9), min_size=1, max_size=40).filter(any)


def shares(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows]) / 512


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(ROWS, st.integers(1, 50)), min_size=1, max_size=6))
def test_the_top_k_threshold_is_the_kth_of_a_sorted_row(rows: list[tuple[list[int], int]]) -> None:
    probs = shares([row for row, _ in rows])
    vocab_size = probs.shape[-1]
    top_ks = [min(k, vocab_size) for _, k in rows]
    most = max((k for k in top_ks if k < vocab_size), default=1)
    found = top_k_threshold(probs, column(*top_ks, dtype=torch.int64), most)
    for row, k, threshold in zip(probs.tolist(), top_ks, found[:, 0].tolist(), strict=True):
        assert threshold == (0 if k == vocab_size else sorted(row, reverse=True)[k - 1])


def test_top_k_of_the_vocabulary_or_more_is_off() -> None:
    logits = normal(4, 50)
    off = [SamplingParams(temperature=1.0, top_k=k) for k in (-1, 0, 50, 10**9)]
    assert torch.equal(kept(logits, *off), logits.softmax(-1))
    beside = kept(logits, *off[:3], SamplingParams(temperature=1.0, top_k=7))
    assert torch.equal(beside[:3], logits[:3].softmax(-1))
    assert (beside > 0).sum(-1).tolist() == [50, 50, 50, 7]


def exact_top_p_threshold(row: Sequence[float], top_p: float) -> float:
    wanted, reached = Fraction(top_p) * sum(map(Fraction, row)), Fraction(0)
    for prob in sorted(row, reverse=True):
        reached += Fraction(prob)
        if reached >= wanted:
            return prob
    raise AssertionError("a whole row is less than a share of it")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(ROWS, st.integers(1, 64)), min_size=1, max_size=6))
def test_the_top_p_threshold_is_that_of_a_sorted_row(rows: list[tuple[list[int], int]]) -> None:
    probs = shares([row for row, _ in rows])
    top_p = column(*(n / 64 for _, n in rows))
    found = top_p_threshold(probs, top_p)
    for row, p, threshold in zip(probs.tolist(), top_p[:, 0].tolist(), found.tolist(), strict=True):
        assert threshold == [0 if p == 1 else exact_top_p_threshold(row, p)]


@pytest.mark.parametrize("size", [255, 256, 257, 258, 600, 5000])
def test_a_nucleus_may_be_larger_than_the_first_candidates(size: int) -> None:
    """The best `size` tokens have exactly half of the row."""
    weight, less = 2**20, 2**19
    best = [weight + 2 * n for n in range(size)]
    count, rest = divmod(sum(best), less)
    row = torch.tensor([rest, *[less] * count, *best], dtype=torch.float32) / 2**40
    order = torch.randperm(len(row), generator=torch.Generator().manual_seed(size))
    few = torch.zeros_like(row)
    few[7] = 0.75
    probs = torch.stack([row[order], few, row[order.flip(0)]])
    found = top_p_threshold(probs, column(0.5, 0.5, 0.5))
    assert found.tolist() == [[weight / 2**40], [0.75], [weight / 2**40]]
    beyond = top_p_threshold(probs, column(0.5 + 1e-12, 0.5, 1.0))
    assert beyond.tolist() == [[less / 2**40], [0.75], [0.0]]


def test_top_p_within_ties_takes_all_of_them() -> None:
    probs = shares([[1] * 300 + [2] * 100])
    for top_p, threshold in [(0.1, 2), (0.4, 2), (0.401, 1), (0.9, 1)]:
        assert top_p_threshold(probs, column(top_p)).tolist() == [[threshold / 512]]


@pytest.mark.parametrize("wanted", [0.0, 0.25, 0.5, 0.75, 0.875, 0.9])
def test_the_crossing_probability_is_the_last_that_is_needed(wanted: float) -> None:
    probs = torch.tensor([[0.5, 0.25, 0.125]])
    expected = {0.0: 0.5, 0.25: 0.5, 0.5: 0.5, 0.75: 0.25, 0.875: 0.125, 0.9: 0.125}
    assert crossing_prob(probs, column(wanted)).tolist() == [[expected[wanted]]]


@pytest.mark.parametrize("top_p", [0.001, 0.3, 0.9, 0.999, 1 - 1e-9, 1 - 2**-53])
@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0, 30.0], ids=["equal", "flat", "usual", "peaked"])
def test_top_p_of_a_whole_vocabulary_is_what_sorting_finds(scale: float, top_p: float) -> None:
    probs = (normal(3, 20_000) * scale).softmax(-1)
    total = probs.sum(-1, dtype=torch.float64)
    found = top_p_threshold(probs, torch.full((3, 1), top_p, dtype=torch.float64))
    for row in range(3):
        reached = probs[row][probs[row] >= found[row]].sum(dtype=torch.float64)
        inside = probs[row][probs[row] > found[row]].sum(dtype=torch.float64)
        assert found[row] in probs[row]
        assert inside - 1e-12 < top_p * total[row] < reached + 1e-12


# --- Filters ----------------------------------------------------------------------------------

# Scores on a grid: equal ones are common, and unequal ones differ in fp32 too.
SCORES = st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=1, max_size=300)
PARAMS = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.25, 0.7, 1.0, 1.5]),
    top_k=st.sampled_from([-1, 0, 2, 3, 10, 299, 1000]),
    top_p=st.sampled_from([1e-6, 0.1, 0.5, 0.9, 0.999, 1.0]) | st.floats(0.01, 1.0),
    min_p=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    seed=st.integers(-(2**63), 2**63 - 1),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(SCORES, PARAMS)
@example([0.0] * 300, SamplingParams(temperature=1.0, top_p=0.5))
@example([0.0, 0.0, 0.0, -1.0], SamplingParams(temperature=1.0, top_k=2))
def test_the_filters_keep_what_sorting_would(scores: list[float], params: SamplingParams) -> None:
    probs = kept(torch.tensor([scores]), params)[0]
    least, most = (naive_probs(scores, params, slack) for slack in (-1e-6, 1e-6))
    for ours, low, high in zip(probs.tolist(), least, most, strict=True):
        assert (ours > 0) >= (low > 0) and (ours > 0) <= (high > 0)
        assert ours == 0 or ours == pytest.approx(high, rel=1e-5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(PARAMS, min_size=1, max_size=8), st.data())
def test_no_token_comes_from_outside_the_allowed_set(
    params: list[SamplingParams], data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, 60))
    rows = [
        data.draw(st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=size, max_size=size))
        for _ in params
    ]
    tokens = choose(torch.tensor(rows), [make_req(one) for one in params])
    for row, one, token in zip(rows, params, tokens, strict=True):
        assert naive_probs(row, one, slack=1e-6)[token] > 0


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=1.0),
        SamplingParams(temperature=0.6),
        SamplingParams(temperature=2.0, top_k=5),
        SamplingParams(temperature=1.0, top_p=0.8),
        SamplingParams(temperature=1.0, min_p=0.3),
        SamplingParams(temperature=1.5, top_k=8, top_p=0.9, min_p=0.05),
    ],
)
def test_frequencies_match_the_exact_probabilities(params: SamplingParams) -> None:
    row = [0.3, 2.0, 1.9, -1.0, 0.0, 1.0, 1.2, -0.5, 0.8, 1.0]
    exact = naive_probs(row, params)
    reqs = [make_req(replace(params, seed=seed)) for seed in range(4000)]
    tokens = choose(torch.tensor([row]).repeat(len(reqs), 1), reqs)
    assert_fits([tokens.count(t) for t in range(len(row))], [p / sum(exact) for p in exact])


def test_a_filter_that_nobody_uses_is_none() -> None:
    def unused(*params: SamplingParams) -> set[str]:
        filters = make_filters([*params], [0.0] * len(params), 100, CPU)
        return {one.name for one in fields(filters) if getattr(filters, one.name) is None}

    plain = SamplingParams(temperature=0.5)
    assert unused(plain, plain) == {"top_k", "top_p", "min_p"}
    assert unused(plain, replace(plain, top_k=100)) == {"top_k", "top_p", "min_p"}
    assert unused(plain, replace(plain, top_k=99)) == {"top_p", "min_p"}
    assert unused(replace(plain, top_p=0.9), plain) == {"top_k", "min_p"}
    assert unused(replace(plain, min_p=0.1), plain) == {"top_k", "top_p"}
    for greedy in (SamplingParams(), SamplingParams(temperature=1.0, top_k=1)):
        beside = replace(greedy, top_p=0.5, min_p=0.5)
        assert unused(beside, plain) == {"top_k", "top_p", "min_p"}


def test_min_p_is_a_share_of_the_best() -> None:
    logits = torch.tensor([[8.0, 4.0, 2.0, 1.0], [8.0, 4.0, 2.0, 1.0]]).log()
    params = SamplingParams(temperature=1.0, min_p=0.25), SamplingParams(temperature=1.0, min_p=0.3)
    assert (kept(logits, *params) > 0).tolist() == [[True] * 3 + [False], [True] * 2 + [False] * 2]


def test_no_filter_ever_drops_the_best() -> None:
    logits = normal(3, 500)
    extremes = [
        SamplingParams(temperature=1.0, top_p=5e-324),
        SamplingParams(temperature=9.0, top_k=2, top_p=1e-9, min_p=1.0),
        SamplingParams(temperature=1e300, min_p=1.0),
    ]
    probs = kept(logits, *extremes)
    assert (probs.gather(-1, logits.argmax(-1)[:, None]) > 0).all()


def test_a_nucleus_of_thousands_is_exact() -> None:
    logits = normal(2, REAL_VOCAB)
    probs = kept(logits, *[SamplingParams(temperature=1.0, top_p=0.9)] * 2)
    sizes = (probs > 0).sum(-1)
    assert (sizes > 10_000).all()
    for row, size in zip(logits.softmax(-1), sizes.tolist(), strict=True):
        reached = row.sort(descending=True).values.cumsum(0, dtype=torch.float64)
        assert reached[size - 2] < 0.9 * reached[-1] <= reached[size - 1]


def test_the_token_that_crosses_top_p_stays() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log()
    for top_p, size in [(0.49, 1), (0.51, 2), (0.79, 2), (0.81, 3)]:
        probs = kept(logits, SamplingParams(temperature=1.0, top_p=top_p))
        assert (probs > 0).tolist() == [[True] * size + [False] * (3 - size)]


def test_top_p_counts_within_what_top_k_has_left() -> None:
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    # Of the best two the first has 4/7: alone it reaches 0.55, of all four it would not.
    probs = kept(logits, SamplingParams(temperature=1.0, top_k=2, top_p=0.55))
    assert (probs > 0).tolist() == [[True, False, False, False]]


def test_tokens_of_equal_probability_stay_or_go_together() -> None:
    logits = torch.tensor([[2.0, 1.0, 1.0, 1.0, 0.0]])
    for params in [
        SamplingParams(temperature=1.0, top_k=2),
        SamplingParams(temperature=1.0, top_p=0.6),
        SamplingParams(temperature=1.0, min_p=0.36),
    ]:
        assert (kept(logits, params) > 0).tolist() == [[True, True, True, True, False]]


def test_filters_that_are_off_leave_a_row_untouched_beside_others() -> None:
    logits = normal(2, REAL_VOCAB) * 3
    everything = SamplingParams(temperature=0.9, top_k=30, top_p=0.7, min_p=0.2)
    probs = kept(logits, SamplingParams(temperature=1.0), everything)
    assert torch.equal(probs[0], logits[0].softmax(-1))


def test_min_p_of_1_leaves_the_best() -> None:
    logits = normal(6, 200)
    reqs = [make_req(SamplingParams(temperature=5.0, min_p=1.0, seed=i)) for i in range(6)]
    assert choose(logits, reqs) == logits.argmax(-1).tolist()


@pytest.mark.parametrize("temperature", [1e30, 1e300, 10**300])
def test_an_enormous_temperature_makes_all_that_can_come_alike(temperature: float) -> None:
    logits = torch.tensor([[-math.inf, 1e4, -1e4, 0.0]])
    params = SamplingParams(temperature=temperature, top_k=10**30)
    params.validate()
    assert kept(logits, params)[0].tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize("temperature", [1e-30, 1e-60, 5e-324])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_a_tiny_temperature_is_greedy_and_never_nan(temperature: float, scale: float) -> None:
    logits = normal(4, 300) * scale
    reqs = [make_req(SamplingParams(temperature=temperature, seed=i)) for i in range(4)]
    probs = kept(logits, *[req.sampling_params for req in reqs])
    assert not probs.isnan().any()
    assert choose(logits, reqs) == logits.argmax(-1).tolist()


# --- The draw ---------------------------------------------------------------------------------

LARGEST = 1 - 2**-40  # that `uniform` gives


def test_the_draw_is_where_the_running_sum_passes_the_share() -> None:
    row = torch.tensor([[1.0, 2.0, 1.0]])
    expected = {0.0: 0, 0.25 - 2**-40: 0, 0.25: 1, 0.5: 1, 0.75 - 2**-40: 1, 0.75: 2, LARGEST: 2}
    for scale in (1.0, 0.25, 2**-30):  # what filters leave need not add up to 1
        tokens = draw(row.repeat(len(expected), 1) * scale, column(*expected))
        assert tokens.tolist() == [*expected.values()]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(ROWS, st.integers(0, 2**40 - 1))
@example([0, 1, 0, 0, 1, 0], 0)
@example([0, 1, 0, 0, 1, 0], 2**39)
@example([0, 1, 0, 0, 1, 0], 2**40 - 1)
def test_the_draw_never_takes_a_token_of_probability_0(row: list[int], bits: int) -> None:
    [token] = draw(shares([row]), column(bits / 2**40)).tolist()
    assert row[token] > 0
    before = Fraction(sum(row[:token]), sum(row))
    assert before <= Fraction(bits, 2**40) < before + Fraction(row[token], sum(row))


def test_the_draw_is_right_at_both_ends_of_a_whole_vocabulary() -> None:
    probs = (normal(4, REAL_VOCAB) * 5).softmax(-1)
    probs[:, :100] = probs[:, -100:] = 0
    probs[:, [100, -101]] = 0.01
    ends = [100, 100, REAL_VOCAB - 101, REAL_VOCAB - 101]
    assert draw(probs, column(0.0, 2**-40, 1 - 2**-39, LARGEST)).tolist() == ends


def test_the_draw_gives_a_long_tail_its_share() -> None:
    """Three quarters, and 2**-26 more, are one number in fp32."""
    probs = torch.tensor([[0.75, *[2**-26] * 1024]])
    total = Fraction(3, 4) + Fraction(1024, 2**26)
    for share in (1 - 2**-16, 1 - 2**-17, 1 - 2**-20):
        passed = Fraction(share) * total - Fraction(3, 4)  # of the tail
        assert draw(probs, column(share)).tolist() == [1 + int(passed * 2**26)]


def test_a_token_that_cannot_come_never_comes() -> None:
    logits = torch.full((200, 5), -math.inf)
    logits[:, 3] = 0.0
    reqs = [make_req(SamplingParams(temperature=2.0, seed=i)) for i in range(200)]
    assert set(choose(logits, reqs)) == {3}


# --- Penalties --------------------------------------------------------------------------------


def penalised(logits: torch.Tensor, *reqs: Req) -> torch.Tensor:
    """The scores of all rows after the penalties that their requests ask for."""
    scores = logits.clone()
    for penalty in args_of([*reqs], logits.shape[-1]).penalties:
        apply_penalty(scores[penalty.row], penalty)
    return scores


PENALTIES = [
    {"repetition_penalty": 1.3},
    {"repetition_penalty": 0.7},
    {"presence_penalty": 0.9},
    {"frequency_penalty": -0.6},
    {"repetition_penalty": 1.1, "presence_penalty": -1.0, "frequency_penalty": 0.25},
]


@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize("generated", [[], [5], [5, 2, 5, 5, 17]], ids=["none", "one", "five"])
def test_penalties_are_what_counting_in_a_dict_finds(
    penalties: dict[str, Any], generated: list[int]
) -> None:
    params = SamplingParams(**penalties)
    prompt = [1, 2, 2, 9]
    logits = normal(1, 20)
    expected = naive_penalties(logits[0].tolist(), prompt, generated, params)
    scores = penalised(logits, make_req(params, prompt, generated))
    assert scores[0].tolist() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("penalty", [0.8, 1.1, 1.9])
def test_the_repetition_penalty_is_transformers(penalty: float) -> None:
    prompt, generated = [3, 4, 3], [7, 8, 7]
    logits = normal(1, 50)
    oracle = RepetitionPenaltyLogitsProcessor(penalty)
    expected = oracle(torch.tensor([prompt + generated]), logits.clone())
    req = make_req(SamplingParams(repetition_penalty=penalty), prompt, generated)
    assert torch.equal(penalised(logits, req), expected)


def test_presence_and_frequency_leave_the_prompt_alone() -> None:
    logits = normal(1, 20)
    params = SamplingParams(presence_penalty=2.0, frequency_penalty=2.0)
    assert torch.equal(penalised(logits, make_req(params, [1, 2, 3])), logits)


def test_penalties_touch_only_the_rows_that_ask() -> None:
    logits = normal(4, 20)
    plain, asking = SamplingParams(), SamplingParams(repetition_penalty=1.5)
    reqs = [make_req(one, [row]) for row, one in enumerate([plain, asking, plain, asking])]
    changed = (penalised(logits, *reqs) != logits).nonzero().tolist()
    assert changed == [[1, 1], [3, 3]]  # each the token of its own prompt


def test_penalties_know_a_token_that_is_still_on_its_way_to_the_host() -> None:
    """It is in the token pool at once; the host has only launched the pass that yields it."""
    logits = torch.tensor([[3.0, 2.0, 1.0]])
    req = make_req(SamplingParams(presence_penalty=1.5), [1], [])
    req.complete_one()
    pool = torch.tensor([[1, 0, REAL_VOCAB]], dtype=torch.int32)
    assert sample(logits, make_args([req], pool, 3, 0)).tolist() == [1]


def test_a_penalty_can_change_the_greedy_token() -> None:
    logits = torch.tensor([[3.0, 2.0, 1.0]])
    assert choose(logits, [make_req(SamplingParams(repetition_penalty=2.0), [0])]) == [1]
    assert choose(logits, [make_req(SamplingParams(frequency_penalty=0.6), [1], [0, 0])]) == [1]
    assert choose(logits, [make_req(SamplingParams(presence_penalty=0.6), [1], [0, 0])]) == [0]


def test_penalties_come_before_temperature_and_filters() -> None:
    logits = torch.tensor([[3.0, 2.9, -9.0]])
    params = SamplingParams(temperature=0.5, top_k=2, min_p=1.0, presence_penalty=0.2)
    reqs = [make_req(replace(params, seed=seed), [2], [0]) for seed in range(20)]
    assert set(choose(logits.repeat(20, 1), reqs)) == {1}


def test_an_enormous_penalty_still_leaves_numbers() -> None:
    logits = torch.tensor([[-1.0, -2.0, -3.0], [1.0, -2.0, 3.0], [1.0, -math.inf, 2.0]])
    params = SamplingParams(temperature=1.0, repetition_penalty=1e300, seed=1)
    reqs = [make_req(params, [0, 1, 2]), make_req(params, [0, 2]), make_req(params, [1])]
    assert penalised(logits, *reqs).isfinite().all()
    assert all(0 <= token < 3 for token in choose(logits, reqs))


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, False),
        ({"temperature": 1.0, "top_k": 3, "min_p": 0.1}, False),
        ({"repetition_penalty": 1.1}, True),
        ({"presence_penalty": -0.1}, True),
        ({"frequency_penalty": 0.1}, True),
    ],
)
def test_has_penalties_says_whether_history_counts(params: dict[str, Any], expected: bool) -> None:
    assert SamplingParams(**params).has_penalties is expected


# --- Greedy -----------------------------------------------------------------------------------


def test_greedy_is_the_argmax_of_each_row() -> None:
    logits = normal(8, 1000)
    assert choose(logits, [make_req(SamplingParams())] * 8) == logits.argmax(-1).tolist()


def test_of_equal_best_scores_greedy_takes_the_first() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 2.0]])
    assert choose(logits, [make_req(SamplingParams())]) == [1]


def test_a_greedy_batch_computes_no_softmax_and_sorts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a greedy batch needs an argmax only")

    for name in ("softmax", "log_softmax", "exp", "topk", "sort", "cumsum", "cumsum_"):
        for owner in (torch, torch.Tensor):
            if hasattr(owner, name):
                monkeypatch.setattr(owner, name, forbidden)
    logits = normal(4, 100)
    greedy = [SamplingParams(), SamplingParams(temperature=0.8, top_k=1)]
    with_penalties = SamplingParams(repetition_penalty=1.3, presence_penalty=1.0)
    assert choose(logits[:2], [make_req(p) for p in greedy]) == logits[:2].argmax(-1).tolist()
    choose(logits[:1], [make_req(with_penalties, [1], [2])])
    with pytest.raises(AssertionError, match="argmax only"):  # the trap works
        choose(logits[:2], [make_req(greedy[0]), make_req(SamplingParams(temperature=1.0))])


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(top_p=0.1),
        SamplingParams(top_p=0.9, top_k=50, min_p=0.3),
        SamplingParams(temperature=0.7, top_k=1, top_p=0.5),
        SamplingParams(temperature=50.0, top_k=1),
    ],
)
def test_a_greedy_row_is_the_exact_argmax_beside_random_ones(params: SamplingParams) -> None:
    # The two best scores differ so little that their probabilities are the same number.
    near = torch.tensor([1e-9, 2e-9, -5.0, -6.0])
    assert near[1] > near[0] and near.softmax(-1)[1] == near.softmax(-1)[0]
    others = [SamplingParams(temperature=1.0, top_p=0.9, seed=seed) for seed in range(20)]
    reqs = [make_req(params), *map(make_req, others)]
    assert choose(near.repeat(21, 1), reqs)[0] == 1


# --- Scores that are none ---------------------------------------------------------------------

BROKEN = {
    "NaN": [math.nan] * 4,
    "one NaN": [1.0, math.nan, 2.0, 0.0],
    "infinite": [0.0, math.inf, 1.0, 2.0],
    "all minus infinite": [-math.inf] * 4,
}
ASKING = {
    "greedy": SamplingParams(),
    "sampled": SamplingParams(temperature=0.8, seed=3),
    "filtered": SamplingParams(temperature=0.8, top_k=3, top_p=0.9, min_p=0.01, seed=3),
    "penalised": SamplingParams(repetition_penalty=1.2, frequency_penalty=0.2),
    "penalised and sampled": SamplingParams(temperature=1.0, presence_penalty=0.5, seed=3),
}


@pytest.mark.parametrize("scores", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("params", ASKING.values(), ids=ASKING)
def test_a_row_without_scores_gets_no_token_and_its_neighbours_theirs(
    scores: list[float], params: SamplingParams
) -> None:
    reqs = [make_req(one, [0, 1], [2], uid) for uid, one in enumerate([params, *ASKING.values()])]
    logits = normal(len(reqs), 4)
    healthy = [choose(logits[i : i + 1], [req])[0] for i, req in enumerate(reqs)]
    logits[0] = torch.tensor(scores)
    assert choose(logits, reqs) == [NO_TOKEN, *healthy[1:]]
    assert choose(logits.flip(0), reqs[::-1]) == [*healthy[:0:-1], NO_TOKEN]


def test_scores_of_minus_infinity_are_scores() -> None:
    logits = torch.tensor([[-math.inf, 1.0, -math.inf, 0.0]])
    for params in ASKING.values():
        assert choose(logits, [make_req(params, [0, 1], [2])])[0] in (1, 3)


def test_sixteen_bit_logits_are_sampled_in_fp32() -> None:
    logits = normal(8, 1000).bfloat16()
    reqs = [make_req(SamplingParams(temperature=1.0, top_p=0.9, seed=i)) for i in range(8)]
    assert choose(logits, reqs) == choose(logits.float(), reqs)


# --- A row ignores its neighbours -------------------------------------------------------------

MANY_KINDS = [
    SamplingParams(),
    SamplingParams(temperature=1.0),
    SamplingParams(temperature=0.7, top_p=0.9),
    SamplingParams(temperature=3.0, top_p=0.95),  # a nucleus of thousands
    SamplingParams(temperature=1.0, top_k=40),
    SamplingParams(temperature=1.3, top_k=2000, top_p=0.8),
    SamplingParams(temperature=1.0, min_p=0.1),
    SamplingParams(top_p=0.5),
    SamplingParams(temperature=1.0, top_k=1, top_p=0.5),
    SamplingParams(temperature=0.9, repetition_penalty=1.2, frequency_penalty=0.3),
    SamplingParams(presence_penalty=1.5),
    SamplingParams(temperature=1.0, top_p=0.9, seed=5, logprobs=2),
]


def crowd(vocab_size: int = REAL_VOCAB) -> tuple[torch.Tensor, list[Req]]:
    """Requests that differ in all that counts, and their scores."""
    reqs = [
        make_req(params, [1, 2, 3][: 1 + uid % 3], [4, 5, 4, 6][: uid % 5], uid)
        for uid, params in enumerate(MANY_KINDS)
    ]
    return normal(len(reqs), vocab_size) * 4, reqs


def test_a_row_gets_the_same_token_alone_and_in_any_batch() -> None:
    logits, reqs = crowd()
    alone = [choose(logits[i : i + 1], [req])[0] for i, req in enumerate(reqs)]
    assert choose(logits, reqs) == alone
    assert choose(logits.flip(0), reqs[::-1]) == alone[::-1]
    generator = torch.Generator().manual_seed(0)
    for size in (2, 3, 6, 11):
        some = torch.randperm(len(reqs), generator=generator)[:size].tolist()
        assert choose(logits[some], [reqs[i] for i in some]) == [alone[i] for i in some]


def test_a_row_keeps_the_same_probabilities_alone_and_in_any_batch() -> None:
    logits, _ = crowd()
    together = kept(logits, *MANY_KINDS)
    for i, params in enumerate(MANY_KINDS):
        if not params.is_greedy:
            assert torch.equal(kept(logits[i : i + 1], params)[0], together[i])


def test_what_neighbours_score_changes_no_row() -> None:
    logits, reqs = crowd(5000)
    tokens = choose(logits, reqs)
    for row in range(len(reqs)):
        others = normal(*logits.shape, seed=row + 1) * 9
        others[row] = logits[row]
        assert choose(others, reqs)[row] == tokens[row]


def test_the_logits_are_left_as_they_were() -> None:
    logits, reqs = crowd()
    before = logits.clone()
    choose(logits, reqs)
    assert torch.equal(logits, before)


# --- A seed and an index decide ---------------------------------------------------------------


def test_the_same_seed_and_index_give_the_same_token() -> None:
    logits = normal(1, 1000)
    params = SamplingParams(temperature=1.0, seed=11)
    tokens = [choose(logits, [make_req(params, [5], [0] * n)])[0] for n in range(20)]
    again = [choose(logits, [make_req(params, [1, 2, 3], [4] * n)])[0] for n in range(20)]
    assert tokens == again
    assert len(set(tokens)) > 10


def test_the_random_number_is_that_of_the_seed_and_of_the_index() -> None:
    params = SamplingParams(temperature=1.0, seed=7)
    reqs = [make_req(params, [1] * n, [2] * index) for n in (1, 4) for index in (0, 1, 9)]
    filters = args_of(reqs, 50, seed=3).filters
    assert filters is not None
    expected = [uniform(7, index) for _ in range(2) for index in (0, 1, 9)]
    assert filters.uniform[:, 0].tolist() == expected


def test_without_a_seed_the_engine_s_and_the_request_decide() -> None:
    logits = normal(1, 1000).repeat(20, 1)
    reqs = [make_req(SamplingParams(temperature=1.0), uid=uid) for uid in range(20)]
    tokens = choose(logits, reqs, seed=1)
    assert choose(logits, reqs, seed=1) == tokens
    assert choose(logits, reqs[::-1], seed=1) == tokens[::-1]
    assert choose(logits, reqs, seed=2) != tokens
    assert len(set(tokens)) > 10


def test_an_engine_s_seed_gives_no_request_the_numbers_of_a_user_s_seed() -> None:
    """Otherwise what users draw with seed 0 would come again in the unseeded request 0."""
    own = [make_req(SamplingParams(temperature=1.0, seed=n)) for n in range(50)]
    none = [make_req(SamplingParams(temperature=1.0), uid=n) for n in range(50)]
    filters = args_of(own + none, 10, seed=0).filters
    assert filters is not None
    assert len(set(filters.uniform[:, 0].tolist())) == 100


def test_a_token_that_is_computed_again_is_the_same() -> None:
    """As after a preemption: its request comes back as a prefill of all tokens so far."""
    logits = normal(1, 1000)
    params = SamplingParams(temperature=1.0, top_p=0.9, presence_penalty=0.3, seed=2)
    req = make_req(params, [1, 2], [3, 4, 3])
    first = choose(logits, [req])
    req.cached_len = 4
    decode = choose(logits, [req])
    req.cached_len = 0
    assert choose(logits, [req]) == decode == first


# --- What the sampler reads -------------------------------------------------------------------


def test_what_a_batch_asks_for_is_fixed_when_it_is_formed() -> None:
    logits, reqs = crowd()
    pool = pool_of(reqs)
    args = make_args(reqs, pool, REAL_VOCAB, 0)
    before = sample(logits, args)
    pool.fill_(9)
    for req in reqs:
        req.complete_one()
        req.append_host(torch.tensor([8], dtype=torch.int32))
    del reqs
    assert torch.equal(sample(logits, args), before)


@pytest.mark.parametrize("times", [1, 4])
def test_the_host_reads_one_number_from_the_device_however_many_rows_there_are(times: int) -> None:
    """It has to know which rows need more of their tokens sorted; without top-p not even that."""
    logits, reqs = crowd(2000)
    with DeviceReads() as reads:
        scores, pool = logits.repeat(times, 1).to(DEVICE), pool_of(reqs * times).to(DEVICE)
        args = make_args(reqs * times, pool, 2000, 0)
        assert args.filters is not None and args.penalties
        assert reads.count == 0
        sample(scores, args)
        assert reads.count == 1
        plain = [req for req in reqs if req.sampling_params.top_p == 1]
        args = make_args(plain, pool, 2000, 0)
        assert args.filters is not None and args.penalties
        sample(scores[: len(plain)], args)
        assert reads.count == 1


# --- Log probabilities ------------------------------------------------------------------------


def test_logprobs_are_those_of_the_raw_logits() -> None:
    logits = normal(3, 100)
    params = [
        SamplingParams(logprobs=3),
        SamplingParams(temperature=0.3, top_p=0.5, repetition_penalty=1.4, seed=5, logprobs=20),
        SamplingParams(logprobs=0),
    ]
    args = args_of([make_req(one, [1, 2]) for one in params], 100)
    tokens = sample(logits, args)
    found = token_logprobs(logits, tokens, args)
    assert found is not None
    expected = logits.log_softmax(-1)
    for row, entry in enumerate(found.read(tokens.tolist())):
        assert entry is not None
        assert entry.token_id == tokens[row]
        assert entry.logprob == pytest.approx(float(expected[row, entry.token_id]), abs=1e-6)
        best = expected[row].topk(params[row].logprobs or 0)
        assert [token_id for token_id, _ in entry.top] == best.indices.tolist()
        assert [logprob for _, logprob in entry.top] == pytest.approx(best.values.tolist())


def test_only_those_who_ask_get_logprobs() -> None:
    logits = normal(4, 100)
    asking = [None, 1, None, 4]
    args = args_of([make_req(SamplingParams(logprobs=count)) for count in asking], 100)
    tokens = sample(logits, args)
    found = token_logprobs(logits, tokens, args)
    assert found is not None
    entries = found.read(tokens.tolist())
    assert [entry and len(entry.top) for entry in entries] == asking
    for row, entry in enumerate(entries):
        if entry is not None:
            assert (entry.token_id, entry.logprob) == entry.top[0]  # the greedy one is the best
            assert entry.logprob == pytest.approx(float(logits[row].log_softmax(-1).max()))


def test_where_nobody_asks_nothing_is_computed() -> None:
    class Computes(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, *_: object, **__: object) -> Any:
            raise AssertionError(f"{func} is computed")

    logits, args = normal(2, 100), args_of([make_req(SamplingParams())] * 2, 100)
    tokens = sample(logits, args)
    with Computes():
        assert token_logprobs(logits, tokens, args) is None


def test_logprobs_of_sixteen_bit_logits_are_in_fp32() -> None:
    logits = normal(1, 1000).bfloat16()
    args = args_of([make_req(SamplingParams(logprobs=1))], 1000)
    found = token_logprobs(logits, sample(logits, args), args)
    assert found is not None
    assert found.chosen.tolist() == [float(logits.float().log_softmax(-1).max())]


def test_more_logprobs_than_tokens_are_all_tokens() -> None:
    logits, args = normal(1, 5), args_of([make_req(SamplingParams(logprobs=20))], 5)
    tokens = sample(logits, args)
    found = token_logprobs(logits, tokens, args)
    assert found is not None
    [entry] = found.read(tokens.tolist())
    assert entry is not None
    assert sorted(token for token, _ in entry.top) == [0, 1, 2, 3, 4]
    assert math.fsum(math.exp(logprob) for _, logprob in entry.top) == pytest.approx(1)


@pytest.mark.parametrize("rows", [1, 40])
def test_logprobs_are_read_at_once_for_all_rows(rows: int) -> None:
    """Three reads: those of the chosen, and the best ones' values and their ids."""
    with DeviceReads() as reads:
        args = args_of([make_req(SamplingParams(logprobs=2))] * rows, 100)
        logits = normal(rows, 100).to(DEVICE)
        tokens = sample(logits, args)
        found = token_logprobs(logits, tokens, args)
        assert found is not None and reads.count == 0
        assert len(found.read([0] * rows)) == rows
        assert reads.count == 3


# --- Through LLM ------------------------------------------------------------------------------

PROMPTS = [
    "The engine reads a prompt,",
    "A request waits, is scheduled,",
    "请求等待,然后被调度,",
    "The engine reads a prompt, computes keys",
    "def forward(self, batch):",
]
CROWD = [
    SamplingParams(temperature=1.0, seed=1),
    SamplingParams(temperature=0.7, top_p=0.8, seed=2),
    SamplingParams(temperature=2.0, top_k=20, frequency_penalty=0.5, seed=3),
    SamplingParams(temperature=1.5, min_p=0.02, repetition_penalty=1.2, seed=4),
    SamplingParams(presence_penalty=1.0),
]
HOT = 8  # the scores of the tiny models are that much further apart than a real model's


@cache
def llm_of(folder: Path) -> LLM:
    """One per folder and test run; only tests call it, so that a stub fails in their bodies."""
    return LLM(folder, page_size=4)


@cache
def oracle_of(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def longer(params: SamplingParams, max_tokens: int = 12, **changes: Any) -> SamplingParams:
    return replace(params, max_tokens=max_tokens, ignore_eos=True, **changes)


def hot(params: SamplingParams, max_tokens: int = 12) -> SamplingParams:
    return longer(params, max_tokens, temperature=HOT * params.temperature)


@pytest.mark.parametrize("arch", ["llama", "qwen3"])
def test_the_same_seed_gives_the_same_tokens_alone_and_in_a_crowd(
    tiny_model: TinyModel, arch: str
) -> None:
    llm = llm_of(tiny_model(arch))
    params = [hot(one, 12 - n) for n, one in enumerate(CROWD)]  # they end one after another
    pairs = list(zip(PROMPTS, params, strict=True))
    alone = [llm.generate(prompt, one)[0].token_ids for prompt, one in pairs]
    for order in ([0, 1, 2, 3, 4], [4, 2, 0, 1, 3], [3, 0], [1, 1, 1]):
        outputs = llm.generate([PROMPTS[n] for n in order], [params[n] for n in order])
        assert [output.token_ids for output in outputs] == [alone[n] for n in order]


def test_the_same_seed_gives_the_same_tokens_in_a_stream(tiny_model: TinyModel) -> None:
    llm = llm_of(tiny_model("llama"))
    for prompt, one in zip(PROMPTS, map(hot, CROWD), strict=True):
        pieces = llm.stream(prompt, one)
        streamed = [token for piece in pieces for token in piece.token_ids]
        assert streamed == llm.generate(prompt, one)[0].token_ids


def test_streams_that_take_turns_draw_what_each_draws_alone(tiny_model: TinyModel) -> None:
    llm = llm_of(tiny_model("llama"))
    pairs = list(zip(PROMPTS, map(hot, CROWD), strict=True))
    alone = [llm.generate(prompt, one)[0].token_ids for prompt, one in pairs]
    together = zip(*(llm.stream(prompt, one) for prompt, one in pairs), strict=True)
    rounds = [[piece.token_ids[0] for piece in pieces] for pieces in together]
    assert [list(tokens) for tokens in zip(*rounds, strict=True)] == alone


def test_different_seeds_give_different_tokens(tiny_model: TinyModel) -> None:
    llm = llm_of(tiny_model("llama"))
    params = [hot(SamplingParams(temperature=1.0, seed=seed)) for seed in range(6)]
    outputs = llm.generate([PROMPTS[0]] * 6, params)
    assert len({tuple(output.token_ids) for output in outputs}) == 6


def test_without_a_seed_every_request_draws_its_own_and_an_llm_repeats_itself(
    tiny_model: TinyModel,
) -> None:
    def answers(seed: int) -> list[tuple[int, ...]]:
        with LLM(tiny_model("llama"), seed=seed) as llm:
            outputs = llm.generate([PROMPTS[0]] * 4, hot(SamplingParams(temperature=1.0)))
        return [tuple(output.token_ids) for output in outputs]

    first = answers(0)
    assert len({*first}) == 4
    assert answers(0) == first
    assert not {*first} & {*answers(1)}


@torch.inference_mode()
def oracle_scores(folder: Path, ids: Sequence[int]) -> torch.Tensor:
    """The logits after each of the tokens `ids`, `[num_tokens, vocab_size]`."""
    scores: torch.Tensor = oracle_of(folder)(torch.tensor([ids]), use_cache=False).logits[0]
    return scores


@pytest.mark.parametrize("penalties", [{"repetition_penalty": 2.0}, *PENALTIES[2:]])
def test_penalties_follow_the_text_as_it_grows(
    tiny_model: TinyModel, penalties: dict[str, Any]
) -> None:
    """Greedy tokens are those of transformers' scores and a loop that counts."""
    folder = tiny_model("llama")
    strong = {name: 4 * value if "_p" not in name else value for name, value in penalties.items()}
    params = longer(SamplingParams(**strong))
    crowd = [params, *map(longer, CROWD), params]
    prompts = [PROMPTS[0], *PROMPTS, PROMPTS[2]]
    outputs = llm_of(folder).generate(prompts, crowd)
    for prompt, output in zip((prompts[0], prompts[-1]), (outputs[0], outputs[-1]), strict=True):
        prompt_ids = llm_of(folder).tokenizer(prompt)["input_ids"]
        generated: list[int] = []
        for token in output.token_ids:
            scores = oracle_scores(folder, prompt_ids + generated)[-1].tolist()
            scores = naive_penalties(scores, prompt_ids, generated, params)
            assert scores[token] == max(scores)
            generated.append(token)


def test_logprobs_are_those_of_transformers(tiny_model: TinyModel) -> None:
    folder = tiny_model("llama")
    llm = llm_of(folder)
    counts = [3, None, 0, 20, 1]
    params = [replace(hot(one), logprobs=n) for one, n in zip(CROWD, counts, strict=True)]
    outputs = llm.generate(PROMPTS, params)
    assert outputs[1].logprobs is None
    for prompt, output, count in zip(PROMPTS, outputs, counts, strict=True):
        if count is None:
            continue
        assert output.logprobs is not None
        ids = llm.tokenizer(prompt)["input_ids"] + output.token_ids[:-1]
        expected = oracle_scores(folder, ids)[-len(output.token_ids) :].log_softmax(-1)
        entries = zip(output.logprobs, output.token_ids, expected, strict=True)
        for entry, token, row in entries:
            assert entry.token_id == token
            assert entry.logprob == pytest.approx(float(row[token]), abs=1e-3)
            values = [value for _, value in entry.top]
            assert values == pytest.approx(row.topk(count).values.tolist(), abs=1e-3)
            assert all(row[token] == pytest.approx(value, abs=1e-3) for token, value in entry.top)


@pytest.mark.parametrize("size", [1, 5])
def test_a_step_reads_no_more_often_for_more_requests(tiny_model: TinyModel, size: int) -> None:
    """The tokens of all, which rows to sort on for top-p, and three reads for logprobs."""
    prompts, params = PROMPTS[:size], [hot(one, 4) for one in CROWD[:size]]
    params[0] = replace(params[0], top_p=0.9, logprobs=2, presence_penalty=0.5)
    expected = [one.token_ids for one in llm_of(tiny_model("llama")).generate(prompts, params)]
    with DeviceReads() as reads:
        options: Any = {"page_size": 4, "dtype": torch.float32, "device": DEVICE}
        with LLM(tiny_model("llama"), **options) as llm:
            before = reads.count
            outputs = llm.generate(prompts, params)
            assert reads.count - before == 4 * (1 + 1 + 3)
    assert [output.token_ids for output in outputs] == expected


def test_a_bad_parameter_stops_all_before_anything_is_computed(tiny_model: TinyModel) -> None:
    llm = llm_of(tiny_model("llama"))
    with pytest.raises(ValueError, match="min_p must be"):
        llm.generate(PROMPTS[:2], [SamplingParams(), SamplingParams(min_p=2)])
    llm.scheduler.check_invariants()
    assert len(llm.generate("a", SamplingParams(max_tokens=2, ignore_eos=True))[0].token_ids) == 2


@pytest.mark.slow
def test_the_real_model_draws_the_same_alone_and_in_a_crowd(real_model: Path) -> None:
    params = [longer(one, logprobs=1) for one in CROWD]
    with LLM(real_model, max_seq_len=128) as llm:
        alone = [llm.generate(*pair)[0] for pair in zip(PROMPTS, params, strict=True)]
        together = llm.generate(PROMPTS, params)
    assert [one.token_ids for one in together] == [one.token_ids for one in alone]
