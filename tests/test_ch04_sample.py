"""Chapter 4: from a row of scores to a token, by a sort. Chapter 9 replaces this sampler."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from minisgl.core import Req, SamplingParams
from minisgl.engine import sample as engine_sample

sampler: Any = engine_sample  # whose names are others in chapter 9
NAN, INF = float("nan"), float("inf")

# In no order; the best three probabilities at temperature 1 are 0.50, 0.19 and 0.17.
SCORES = torch.tensor([1.0, 3.0, 2.0, -1.0, 1.9, 0.5, 0.0])


def hot(temperature: float = 1.0, **params: Any) -> SamplingParams:
    return SamplingParams(temperature=temperature, **params)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def choose(scores: torch.Tensor, params: SamplingParams, seed: int = 0) -> int:
    return int(sampler.choose(scores, params, generator(seed)))


def counts(scores: torch.Tensor, params: SamplingParams, draws: int) -> list[int]:
    """How often each token comes in that many draws from one generator."""
    source, found = generator(), [0] * len(scores)
    for _ in range(draws):
        found[int(sampler.choose(scores, params, source))] += 1
    return found


def support(probs: list[float], **params: Any) -> set[int]:
    """The tokens that come at all."""
    scores = torch.tensor(probs).log()
    return {token for token, count in enumerate(counts(scores, hot(**params), 300)) if count}


def exact_probs(scores: torch.Tensor, params: SamplingParams) -> list[float]:
    """The distribution as its definition has it, in Python's own numbers."""
    weights = [math.exp(score / params.temperature) for score in scores.tolist()]
    order = sorted(range(len(weights)), key=lambda token: -weights[token])
    kept = order[: params.top_k] if params.top_k > 0 else order
    total = sum(weights[token] for token in kept)
    nucleus, mass = [], 0.0
    for token in kept:
        if mass >= params.top_p * total:
            break
        nucleus.append(token)
        mass += weights[token]
    return [weights[token] / mass if token in nucleus else 0.0 for token in range(len(weights))]


# --- One row ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [SamplingParams(), SamplingParams(top_p=0.5), SamplingParams(top_k=3), hot(2.0, top_k=1)],
)
def test_a_greedy_row_gets_its_best_token(params: SamplingParams) -> None:
    assert [choose(SCORES, params, seed) for seed in range(20)] == [1] * 20


@pytest.mark.parametrize(
    "params",
    [
        hot(0.7),
        hot(1.0),
        hot(3.0),
        hot(top_k=3),
        hot(top_k=0),
        hot(top_k=100),
        hot(top_p=0.6),
        hot(top_p=0.95),
        hot(2.0, top_k=4, top_p=0.7),
    ],
)
def test_frequencies_match_the_exact_probabilities(params: SamplingParams) -> None:
    draws, chi_square = 4000, 0.0
    for count, prob in zip(counts(SCORES, params, draws), exact_probs(SCORES, params), strict=True):
        assert prob > 0 or count == 0
        if prob > 0:
            chi_square += (count - draws * prob) ** 2 / (draws * prob)
    assert chi_square < 30  # with 6 degrees of freedom it is larger once in 20,000 times


@pytest.mark.parametrize(
    ("top_k", "tokens"), [(1, {2}), (2, {0, 2}), (3, {0, 2, 3}), (4, {0, 1, 2, 3})]
)
def test_top_k_leaves_the_k_best_tokens(top_k: int, tokens: set[int]) -> None:
    assert support([0.3, 0.1, 0.4, 0.2], top_k=top_k) == tokens


@pytest.mark.parametrize(
    ("top_p", "tokens"),
    [
        (0.25, {1}),
        (0.5, {1}),  # reached by the best alone
        (0.51, {0, 1}),  # the second crosses it, and stays
        (0.75, {0, 1}),
        (0.76, {0, 1, 2}),
        (1.0, {0, 1, 2, 3}),
    ],
)
def test_the_token_that_crosses_top_p_stays(top_p: float, tokens: set[int]) -> None:
    assert support([0.25, 0.5, 0.15, 0.1], top_p=top_p) == tokens


def test_top_p_counts_within_what_top_k_has_left() -> None:
    """Of two tokens with 0.4 and 0.3 the first has more than half."""
    assert support([0.1, 0.4, 0.3, 0.2], top_k=2, top_p=0.5) == {1}


@pytest.mark.parametrize(
    "params", [hot(top_p=1e-300), hot(top_p=5e-324, top_k=3), hot(1e-30), hot(1e-60), hot(5e-324)]
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_smallest_numbers_leave_the_best_token(params: SamplingParams, scale: float) -> None:
    if params.top_p == 1:
        scale = max(scale, 1.0)  # closer scores are alike to fp32 after all
    assert {choose(SCORES * scale, params, seed) for seed in range(20)} == {1}


@pytest.mark.parametrize("params", [hot(1e308), hot(10**300), hot(top_k=10**30)])
def test_the_largest_numbers_make_no_error(params: SamplingParams) -> None:
    tokens = {choose(torch.zeros(3), params, seed) for seed in range(50)}
    assert tokens == {0, 1, 2}


def test_a_token_that_cannot_come_never_comes() -> None:
    scores = torch.tensor([-INF, 1.0, -INF, 1.5])
    for params in (hot(), hot(100.0), hot(top_k=3), hot(top_p=0.999)):
        assert {choose(scores, params, seed) for seed in range(50)} == {1, 3}


def test_the_same_seed_draws_the_same_tokens() -> None:
    def text(seed: int) -> list[int]:
        source = generator(seed)
        return [int(sampler.choose(SCORES, hot(), source)) for _ in range(20)]

    assert text(1) == text(1) != text(2)


# --- The rows of a batch ----------------------------------------------------------------------


def sample(rows: list[list[float]], params: list[SamplingParams], seed: int = 0) -> list[int]:
    generators = [generator(seed + row) for row in range(len(rows))]
    tokens = sampler.sample(torch.tensor(rows), sampler.SamplingArgs(params, generators))
    assert (tokens.dtype, tokens.shape) == (torch.int32, (len(rows),))
    return tokens.tolist()


def test_each_row_is_chosen_by_its_own_parameters_and_generator() -> None:
    params = [SamplingParams(), hot(), hot(0.5, top_k=3), hot(top_p=0.7)]
    rows = torch.stack([SCORES.roll(row) for row in range(4)])
    for seed in range(10):
        alone = [
            choose(*pair, seed + row) for row, pair in enumerate(zip(rows, params, strict=True))
        ]
        assert sample(rows.tolist(), params, seed) == alone


def test_a_greedy_batch_sorts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "choose", lambda *_: pytest.fail("the long way"))
    assert sample([SCORES.tolist(), SCORES.roll(2).tolist()], [SamplingParams()] * 2) == [1, 3]


@pytest.mark.parametrize("params", [SamplingParams(), hot(), hot(top_k=2, top_p=0.5)])
@pytest.mark.parametrize(
    "bad",
    [[NAN, 1, 2], [1, 2, NAN], [NAN] * 3, [INF, 1, 2], [INF, INF, NAN], [-INF] * 3, [INF, -INF, 0]],
)
def test_a_row_without_a_best_score_gets_no_token_and_its_neighbours_theirs(
    bad: list[float], params: SamplingParams
) -> None:
    rows = [[0.0, 99.0, 0.0], bad, [0.0, 0.0, 99.0]]
    assert sample(rows, [params] * 3) == [1, sampler.NO_TOKEN, 2]


def test_the_scores_are_left_as_they_were() -> None:
    logits = torch.stack([SCORES, SCORES])
    args = sampler.SamplingArgs([hot(0.5, top_k=2, top_p=0.5), SamplingParams()], [generator()] * 2)
    sampler.sample(logits, args)
    assert torch.equal(logits, torch.stack([SCORES, SCORES]))


def test_sixteen_bit_scores_are_sampled_in_fp32() -> None:
    logits = SCORES.bfloat16()[None]
    for seed in range(20):
        args = sampler.SamplingArgs([hot(top_p=0.9)], [generator(seed)])
        assert sampler.sample(logits, args).tolist() == [choose(SCORES, hot(top_p=0.9), seed)]


# --- A request's generator --------------------------------------------------------------------


def first_draw(engine_seed: int, uid: int, seed: int | None = None) -> float:
    no_handle: Any = None
    ids = torch.tensor([5], dtype=torch.int32)
    req = Req(ids, 0, 0, 1, uid, SamplingParams(seed=seed), no_handle)
    source = sampler.make_generator(req, engine_seed, "cpu")
    return float(torch.rand(1, generator=source, dtype=torch.float64))


def test_a_seed_alone_decides_what_a_request_draws() -> None:
    assert first_draw(0, uid=0, seed=7) == first_draw(1, uid=5, seed=7) != first_draw(0, 0, seed=8)
    assert first_draw(1, uid=0, seed=0) == first_draw(2, uid=0, seed=0)  # a seed like any other


def test_without_a_seed_the_engine_s_and_the_request_decide() -> None:
    draws = [first_draw(seed, uid) for seed in (0, 100) for uid in range(5)]
    assert len(set(draws)) == 10
    assert draws == [first_draw(seed, uid) for seed in (0, 100) for uid in range(5)]


@pytest.mark.parametrize("seed", [-(2**63), -1, 2**63 - 1])
def test_the_largest_seeds_make_no_error(seed: int) -> None:
    assert 0 <= first_draw(0, uid=3, seed=seed) < 1
    assert 0 <= first_draw(seed, uid=3) < 1
