"""Chapter 4: from logits to a token: exact filters, and rows that ignore their neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import RepetitionPenaltyLogitsProcessor

from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.sample import (
    apply_penalties,
    filtered_probs,
    make_filters,
    mix,
    sample,
    token_logprobs,
    top_k_threshold,
    top_p_threshold,
    uniform,
)

NO_HANDLE: Any = None
REAL_VOCAB = 49152
CPU = torch.device("cpu")


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


def choose(logits: torch.Tensor, reqs: list[Req], seed: int = 0) -> list[int]:
    tokens = sample(logits, Batch(reqs, "decode"), seed)
    assert tokens.dtype == torch.int32
    return tokens.tolist()


def kept(logits: torch.Tensor, *params: SamplingParams) -> torch.Tensor:
    """What the filters leave of each row's probabilities."""
    reqs = [make_req(one) for one in params]
    return filtered_probs(logits, make_filters(reqs, logits.shape[-1], 0, CPU))


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


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
    for token in set(prompt) | set(generated):
        factor = params.repetition_penalty
        result[token] = result[token] / factor if result[token] > 0 else result[token] * factor
    for token in set(generated):
        result[token] -= params.presence_penalty
        result[token] -= params.frequency_penalty * list(generated).count(token)
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
    penalised = SamplingParams(repetition_penalty=1.3, presence_penalty=1.0)
    assert choose(logits[:2], [make_req(p) for p in greedy]) == logits[:2].argmax(-1).tolist()
    choose(logits[:1], [make_req(penalised, [1], [2])])
    with pytest.raises(AssertionError, match="argmax only"):  # the trap works
        choose(logits[:2], [make_req(greedy[0]), make_req(SamplingParams(temperature=1.0))])


@pytest.mark.parametrize(
    "params",
    [
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
    others = [SamplingParams(temperature=1.0, seed=seed) for seed in range(20)]
    reqs = [make_req(params), *map(make_req, others)]
    assert choose(near.repeat(21, 1), reqs)[0] == 1


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


def test_the_same_seed_and_index_give_the_same_token() -> None:
    logits = normal(1, 1000)
    params = SamplingParams(temperature=1.0, seed=11)
    tokens = [choose(logits, [make_req(params, [5], [0] * n)])[0] for n in range(20)]
    again = [choose(logits, [make_req(params, [1, 2, 3], [4] * n)])[0] for n in range(20)]
    assert tokens == again
    assert len(set(tokens)) > 10


def test_without_a_seed_the_engine_s_and_the_request_decide() -> None:
    logits = normal(1, 1000).repeat(20, 1)
    reqs = [make_req(SamplingParams(temperature=1.0), uid=uid) for uid in range(20)]
    tokens = choose(logits, reqs, seed=1)
    assert choose(logits, reqs, seed=1) == tokens
    assert choose(logits, reqs[::-1], seed=1) == tokens[::-1]
    assert choose(logits, reqs, seed=2) != tokens
    assert len(set(tokens)) > 10


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
    SamplingParams(temperature=0.9, repetition_penalty=1.2, frequency_penalty=0.3),
    SamplingParams(presence_penalty=1.5),
]


def test_a_row_gets_the_same_token_alone_and_in_any_batch() -> None:
    reqs = [
        make_req(params, [1, 2, 3], [4, 5, 4], uid=uid) for uid, params in enumerate(MANY_KINDS)
    ]
    logits = normal(len(reqs), REAL_VOCAB) * 4
    alone = [choose(logits[i : i + 1], [req])[0] for i, req in enumerate(reqs)]
    assert choose(logits, reqs) == alone
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        some = torch.randperm(len(reqs), generator=generator)[:6].tolist()
        assert choose(logits[some], [reqs[i] for i in some]) == [alone[i] for i in some]


def test_a_row_keeps_the_same_probabilities_alone_and_in_any_batch() -> None:
    logits = normal(len(MANY_KINDS), REAL_VOCAB) * 4
    together = kept(logits, *MANY_KINDS)
    for i, params in enumerate(MANY_KINDS):
        assert torch.equal(kept(logits[i : i + 1], params)[0], together[i])


def test_the_logits_are_left_as_they_were() -> None:
    logits = normal(len(MANY_KINDS), 500)
    before = logits.clone()
    choose(logits, [make_req(params, [1, 2], [3]) for params in MANY_KINDS])
    assert torch.equal(logits, before)


# --- Filters ----------------------------------------------------------------------------------

# Scores on a grid: equal ones are common, and unequal ones differ in fp32 too.
SCORES = st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=1, max_size=300)
PARAMS = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.25, 0.7, 1.0, 1.5]),
    top_k=st.sampled_from([-1, 0, 2, 3, 10, 299, 1000]),
    top_p=st.sampled_from([1e-6, 0.1, 0.5, 0.9, 0.999, 1.0]) | st.floats(0.01, 1.0),
    min_p=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    seed=st.integers(0, 2**64 - 1),
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


@settings(max_examples=150, deadline=None, derandomize=True)
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


@pytest.mark.parametrize("top_p", [0.001, 0.3, 0.9, 0.999, 1 - 1e-9])
@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0, 30.0], ids=["equal", "flat", "usual", "peaked"])
def test_top_p_of_a_whole_vocabulary_is_what_sorting_finds(scale: float, top_p: float) -> None:
    probs = (normal(3, 20_000) * scale).softmax(-1)
    ordered = probs.sort(-1, descending=True).values
    reached = ordered.cumsum(-1, dtype=torch.float64)
    wanted = top_p * reached[:, -1:]
    found = top_p_threshold(probs, torch.full((3, 1), top_p, dtype=torch.float64))
    for row in range(3):
        nucleus = probs[row] >= found[row]
        weight = probs[row][nucleus].sum(dtype=torch.float64)
        inside = probs[row][probs[row] > found[row]].sum(dtype=torch.float64)
        assert found[row] in probs[row]
        assert inside - 1e-12 < wanted[row] < weight + 1e-12


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


def test_top_k_of_the_vocabulary_or_more_is_off() -> None:
    logits = normal(4, 50)
    off = [SamplingParams(temperature=1.0, top_k=k) for k in (-1, 0, 50, 10**9)]
    assert torch.equal(kept(logits, *off), logits.softmax(-1))
    threshold = top_k_threshold(logits.softmax(-1), torch.tensor([[50], [1], [7], [50]]))
    ordered = logits.softmax(-1).sort(-1, descending=True).values
    assert threshold[:, 0].tolist() == [0, ordered[1, 0], ordered[2, 6], 0]


def test_filters_that_are_off_leave_a_row_untouched_beside_others() -> None:
    logits = normal(2, REAL_VOCAB) * 3
    everything = SamplingParams(temperature=0.9, top_k=30, top_p=0.7, min_p=0.2)
    probs = kept(logits, SamplingParams(temperature=1.0), everything)
    assert torch.equal(probs[0], logits[0].softmax(-1))


def test_min_p_of_1_leaves_the_best() -> None:
    logits = normal(6, 200)
    reqs = [make_req(SamplingParams(temperature=5.0, min_p=1.0, seed=i)) for i in range(6)]
    assert choose(logits, reqs) == logits.argmax(-1).tolist()


@pytest.mark.parametrize("temperature", [1e-30, 1e-60, 5e-324])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_a_tiny_temperature_is_greedy_and_never_nan(temperature: float, scale: float) -> None:
    logits = normal(4, 300) * scale
    reqs = [make_req(SamplingParams(temperature=temperature, seed=i)) for i in range(4)]
    probs = kept(logits, *[req.sampling_params for req in reqs])
    assert not probs.isnan().any()
    assert choose(logits, reqs) == logits.argmax(-1).tolist()


def test_a_token_that_cannot_come_never_comes() -> None:
    logits = torch.full((200, 5), -math.inf)
    logits[:, 3] = 0.0
    reqs = [make_req(SamplingParams(temperature=2.0, seed=i)) for i in range(200)]
    assert set(choose(logits, reqs)) == {3}


def test_sixteen_bit_logits_are_sampled_in_fp32() -> None:
    logits = normal(8, 1000).bfloat16()
    reqs = [make_req(SamplingParams(temperature=1.0, top_p=0.9, seed=i)) for i in range(8)]
    assert choose(logits, reqs) == choose(logits.float(), reqs)


# --- Penalties --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "penalties",
    [
        {"repetition_penalty": 1.3},
        {"repetition_penalty": 0.7},
        {"presence_penalty": 0.9},
        {"frequency_penalty": -0.6},
        {"repetition_penalty": 1.1, "presence_penalty": -1.0, "frequency_penalty": 0.25},
    ],
)
def test_penalties_are_what_a_loop_over_the_tokens_finds(penalties: dict[str, float]) -> None:
    params = SamplingParams(**penalties)  # type: ignore[arg-type]
    prompt, generated = [1, 2, 2, 9], [5, 2, 5, 5, 17]
    logits = normal(1, 20)
    expected = naive_penalties(logits[0].tolist(), prompt, generated, params)
    apply_penalties(logits, [make_req(params, prompt, generated)])
    assert logits[0].tolist() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("penalty", [0.8, 1.1, 1.9])
def test_the_repetition_penalty_is_transformers(penalty: float) -> None:
    prompt, generated = [3, 4, 3], [7, 8, 7]
    logits = normal(1, 50)
    oracle = RepetitionPenaltyLogitsProcessor(penalty)
    expected = oracle(torch.tensor([prompt + generated]), logits.clone())
    apply_penalties(
        logits, [make_req(SamplingParams(repetition_penalty=penalty), prompt, generated)]
    )
    assert torch.equal(logits, expected)


def test_presence_and_frequency_leave_the_prompt_alone() -> None:
    logits = normal(1, 20)
    before = logits.clone()
    params = SamplingParams(presence_penalty=2.0, frequency_penalty=2.0)
    apply_penalties(logits, [make_req(params, [1, 2, 3])])
    assert torch.equal(logits, before)


def test_penalties_touch_only_the_rows_that_ask() -> None:
    logits = normal(3, 20)
    before = logits.clone()
    plain, penalised = SamplingParams(), SamplingParams(repetition_penalty=1.5)
    apply_penalties(logits, [make_req(params, [1]) for params in (plain, penalised, plain)])
    assert torch.equal(logits[[0, 2]], before[[0, 2]])
    assert not torch.equal(logits[1], before[1])


def test_a_penalty_can_change_the_greedy_token() -> None:
    logits = torch.tensor([[3.0, 2.0, 1.0]])
    assert choose(logits, [make_req(SamplingParams(repetition_penalty=2.0), [0])]) == [1]
    assert choose(logits, [make_req(SamplingParams(frequency_penalty=0.6), [1], [0, 0])]) == [1]
    assert choose(logits, [make_req(SamplingParams(presence_penalty=0.6), [1], [0, 0])]) == [0]


def test_an_enormous_penalty_still_leaves_numbers() -> None:
    logits = torch.tensor([[-1.0, -2.0, -3.0], [1.0, -2.0, 3.0]])
    params = SamplingParams(temperature=1.0, repetition_penalty=1e300, seed=1)
    reqs = [make_req(params, [0, 1, 2]), make_req(params, [0, 2])]
    apply_penalties(logits, reqs)
    assert logits.isfinite().all()
    assert all(0 <= token < 3 for token in choose(logits, reqs))


# --- Log probabilities ------------------------------------------------------------------------


def test_logprobs_are_those_of_the_raw_logits() -> None:
    logits = normal(3, 100)
    params = [
        SamplingParams(logprobs=3),
        SamplingParams(temperature=0.3, top_p=0.5, repetition_penalty=1.4, seed=5, logprobs=20),
        SamplingParams(logprobs=0),
    ]
    reqs = [make_req(one, [1, 2]) for one in params]
    tokens = torch.tensor(choose(logits, reqs))
    expected = logits.log_softmax(-1)
    for row, (entry, token) in enumerate(
        zip(token_logprobs(logits, tokens, reqs), tokens.tolist(), strict=True)
    ):
        assert entry is not None
        assert entry.token_id == token
        assert entry.logprob == pytest.approx(float(expected[row, token]), abs=1e-6)
        best = expected[row].topk(params[row].logprobs or 0)
        assert [token_id for token_id, _ in entry.top] == best.indices.tolist()
        assert [logprob for _, logprob in entry.top] == pytest.approx(best.values.tolist())


def test_only_those_who_ask_get_logprobs() -> None:
    logits = normal(2, 100)
    reqs = [make_req(SamplingParams()), make_req(SamplingParams(logprobs=1))]
    silent, asked = token_logprobs(logits, logits.argmax(-1), reqs)
    assert silent is None
    assert asked is not None and len(asked.top) == 1


# --- Parameters -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rule", "values"),
    [
        ("temperature", "≥ 0", [-0.1, math.nan, math.inf, True, "1", None]),
        ("top_k", "an integer ≥ 1, or -1 or 0 for off", [-2, 1.5, True, math.nan, None]),
        ("top_p", "> 0 and ≤ 1", [0, 0.0, 1.1, -0.5, math.nan, True, None]),
        ("min_p", "≥ 0 and ≤ 1", [-0.1, 1.1, math.nan, False]),
        ("max_tokens", "an integer ≥ 1", [0, -5, 2.0, True, None]),
        ("seed", "an integer", [1.5, "1", math.nan, True]),
        ("repetition_penalty", "> 0", [0, -1.0, math.inf, math.nan]),
        ("presence_penalty", "from -2 to 2", [-2.1, 2.1, math.nan]),
        ("frequency_penalty", "from -2 to 2", [-2.1, 2.1, math.inf]),
        ("logprobs", "an integer from 0 to 20", [-1, 21, 1.0, True]),
    ],
)
def test_a_bad_parameter_is_refused_with_its_rule_and_value(
    name: str, rule: str, values: list[Any]
) -> None:
    for value in values:
        with pytest.raises(ValueError) as refused:
            SamplingParams(**{name: value}).validate()
        assert str(refused.value) == f"{name} must be {rule}, got {value!r}"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"temperature": 0},
        {"temperature": 2.5, "top_k": 0, "top_p": 1, "min_p": 1, "seed": -(2**70)},
        {"top_k": 10**9, "top_p": 1e-9, "max_tokens": 1, "logprobs": 0},
        {"repetition_penalty": 0.1, "presence_penalty": -2, "frequency_penalty": 2},
    ],
)
def test_parameters_at_their_edges_are_accepted(params: dict[str, Any]) -> None:
    SamplingParams(**params).validate()


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
