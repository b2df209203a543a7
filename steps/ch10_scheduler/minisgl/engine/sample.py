"""From logits to tokens: penalties, filters, and randomness that depends on the request alone.

    logits ─ penalties ─┬─ argmax ───────────────────────────────── rows that are greedy
                        └─ temperature ─ softmax ─ top-k ─ top-p ─ min-p ─ draw ── the others

Every step treats a row without looking at its neighbours, so a request gets the same tokens
alone and in any batch. What a row asks for is fixed in `SamplingArgs` when the batch is formed:
the sampler knows no requests, and reads nothing back from the device but one flag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from minisgl.core import Req, SamplingParams
from minisgl.engine.randomness import mix, uniform

NO_TOKEN = -1  # in place of a token whose scores are NaN or infinite
_FIRST_CANDIDATES = 256
_COLDEST, _HOTTEST = 1e-30, 1e30  # far beyond, fp32 has 0 and infinity, and both lead to NaN


@dataclass(frozen=True)
class Filters:
    """The parameters of rows that are not greedy, float64 `[batch_size, 1]` unless said otherwise.

    A filter that no row uses is None. Those of greedy rows are off.
    """

    greedy: torch.Tensor  # bool
    temperature: torch.Tensor
    top_k: torch.Tensor | None  # int64, vocab_size where off
    max_top_k: int  # the largest that is not off
    top_p: torch.Tensor | None  # 1 where off
    min_p: torch.Tensor | None  # 0 where off
    uniform: torch.Tensor  # the random number of this token, in [0, 1)


@dataclass(frozen=True)
class Penalty:
    """A row whose scores depend on the tokens before."""

    row: int
    params: SamplingParams
    prompt_ids: torch.Tensor  # [num_prompt_tokens], on the device
    generated_ids: torch.Tensor  # [num_generated_tokens]


@dataclass(frozen=True)
class SamplingArgs:
    """What the sampler needs to know of a batch."""

    filters: Filters | None  # None: every row is greedy
    penalties: list[Penalty]
    num_logprobs: list[int | None]  # per row
    banned: list[tuple[int, list[int]]]  # rows, and token ids that they cannot choose


def make_args(
    reqs: list[Req],
    token_pool: torch.Tensor,
    vocab_size: int,
    seed: int,
    eos_ids: frozenset[int] = frozenset(),
) -> SamplingArgs:
    """The arguments of a batch that is about to be computed.

    `token_pool`, `[num_rows, max_seq_len]` on the device, holds the tokens so far; `seed` is the
    engine's, and serves requests without one. `eos_ids` are the tokens that end an answer.
    """
    params = [req.sampling_params for req in reqs]
    filters = None
    if not all(p.is_greedy for p in params):
        uniforms = [_uniform_of(req, seed) for req in reqs]
        filters = make_filters(params, uniforms, vocab_size, token_pool.device)
    penalties, banned = [], []
    for row, req in enumerate(reqs):
        if req.sampling_params.has_penalties:
            known = token_pool[req.table_idx, : req.device_len].long()
            parts = known[: req.prompt_len], known[req.prompt_len :]
            penalties.append(Penalty(row, req.sampling_params, *parts))
        if req.device_len - req.prompt_len < req.sampling_params.min_tokens:
            ends = req.sampling_params.end_ids(eos_ids)
            banned.append((row, [token_id for token_id in ends if token_id < vocab_size]))
    return SamplingArgs(filters, penalties, [p.logprobs for p in params], banned)


def _uniform_of(req: Req, seed: int) -> float:
    """The random number of the token that this pass yields.

    It depends on the request's seed and the token's index, not on a generator's state: the token
    is the same in any batch, and after the request has been interrupted and computed again.
    """
    own = req.sampling_params.seed
    index = req.device_len - req.prompt_len
    return uniform(mix(seed, req.uid) if own is None else own, index)


def make_filters(
    params: list[SamplingParams], uniforms: list[float], vocab_size: int, device: torch.device
) -> Filters:
    """The parameters of a batch as tensors; `uniforms` are the rows' random numbers."""

    def column(values: Sequence[float], dtype: torch.dtype = torch.float64) -> torch.Tensor:
        return torch.tensor(values, dtype=dtype, device=device)[:, None]

    greedy = [p.temperature <= 0 or p.top_k == 1 for p in params]
    off = SamplingParams(temperature=1.0)
    params = [off if is_greedy else p for p, is_greedy in zip(params, greedy, strict=True)]
    top_ks = [p.top_k if 0 < p.top_k < vocab_size else vocab_size for p in params]
    max_top_k = max((k for k in top_ks if k < vocab_size), default=0)
    return Filters(
        greedy=column(greedy, torch.bool),
        temperature=column([min(max(p.temperature, _COLDEST), _HOTTEST) for p in params]),
        top_k=column(top_ks, torch.int64) if max_top_k else None,
        max_top_k=max_top_k,
        top_p=column([p.top_p for p in params]) if any(p.top_p < 1 for p in params) else None,
        min_p=column([p.min_p for p in params]) if any(p.min_p > 0 for p in params) else None,
        uniform=column(uniforms),
    )


def sample(logits: torch.Tensor, args: SamplingArgs) -> torch.Tensor:
    """Choose a token per row: `[batch_size, vocab_size]` to int32 `[batch_size]`.

    A row whose best score is NaN or infinite gets `NO_TOKEN`.
    """
    logits = logits.float()
    best, tokens = logits.max(dim=-1)
    if args.penalties or args.banned:
        logits = logits.clone()
        for penalty in args.penalties:
            apply_penalty(logits[penalty.row], penalty)
        for row, token_ids in args.banned:
            # Not minus infinity: where every token is banned, the softmax would be NaN.
            logits[row, token_ids] = torch.finfo(logits.dtype).min
        tokens = logits.argmax(dim=-1)
    if args.filters is not None:
        drawn = draw(filtered_probs(logits, args.filters), args.filters.uniform)
        tokens = torch.where(args.filters.greedy[:, 0], tokens, drawn)
    return torch.where(best.isfinite(), tokens, NO_TOKEN).int()


def apply_penalty(scores: torch.Tensor, penalty: Penalty) -> None:
    """Lower (or raise) the scores `[vocab_size]` of tokens that a request has seen, in place.

    Repetition as in Keskar et al., "CTRL" (2019); presence and frequency as OpenAI defines them.
    """
    params, generated = penalty.params, penalty.generated_ids
    seen = torch.zeros_like(scores, dtype=torch.bool)
    seen[penalty.prompt_ids] = True
    seen[generated] = True
    factor = float(params.repetition_penalty)
    repeated = torch.where(scores > 0, scores / factor, scores * factor)
    # Infinite scores would make the softmax NaN.
    scores.copy_(torch.where(seen, repeated.nan_to_num(), scores))
    counts = torch.zeros_like(scores).index_add_(0, generated, torch.ones_like(generated).float())
    scores -= params.presence_penalty * (counts > 0) + params.frequency_penalty * counts


def filtered_probs(logits: torch.Tensor, filters: Filters) -> torch.Tensor:
    """Probabilities `[batch_size, vocab_size]`, 0 for what a filter removes; not renormalised.

    A filter keeps the tokens whose probability reaches a threshold, so tokens of equal
    probability stay or go together and no order among them matters.
    """
    # The best score becomes 0 first: a tiny temperature would overflow.
    shifted = logits - logits.amax(-1, keepdim=True)
    probs = shifted.div_(filters.temperature.float()).softmax(-1)
    if filters.top_k is not None:
        _drop_below(top_k_threshold(probs, filters.top_k, filters.max_top_k), probs)
    if filters.top_p is not None:
        _drop_below(top_p_threshold(probs, filters.top_p), probs)
    if filters.min_p is not None:
        _drop_below(probs.amax(-1, keepdim=True) * filters.min_p.float(), probs)
    return probs


def _drop_below(threshold: torch.Tensor, probs: torch.Tensor) -> None:
    probs.masked_fill_(probs < threshold, 0.0)


def top_k_threshold(probs: torch.Tensor, top_k: torch.Tensor, most: int) -> torch.Tensor:
    """The k-th largest probability of each row, 0 where `top_k` is the whole vocabulary.

    `most` is the largest `top_k` below that.
    """
    kth = probs.topk(most).values.gather(-1, top_k.clamp(max=most) - 1)
    return torch.where(top_k < probs.shape[-1], kth, 0.0)


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """The probability of the token with which the best ones' sum first reaches `top_p`, or 0.

    That token stays (nucleus sampling: Holtzman et al., 2019). Sorting the whole vocabulary would
    cost more than all the rest, and the best few hundred tokens are enough for most rows: only
    the others are sorted.
    """
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    best = probs.topk(min(_FIRST_CANDIDATES, probs.shape[-1])).values
    threshold = crossing_prob(best, wanted)
    beyond = (best.sum(-1, keepdim=True, dtype=torch.float64) < wanted) & (top_p < 1)
    rows = beyond[:, 0].nonzero()[:, 0]
    if len(rows):
        every = probs[rows].sort(descending=True).values
        threshold[rows] = crossing_prob(every, wanted[rows])
    return torch.where(top_p < 1, threshold, 0.0)


def crossing_prob(probs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Of descending `probs` `[num_rows, n]`, the one with which the sum reaches `wanted`.

    The last, where rounding keeps the sum below.
    """
    crossing = (probs.cumsum(-1, dtype=torch.float64) < wanted).sum(-1, keepdim=True)
    return probs.gather(-1, crossing.clamp(max=probs.shape[-1] - 1))


def draw(probs: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """The token at which the running sum of a row passes its share `uniform`: `[batch_size]`.

    One random number per token instead of one per entry of the vocabulary, and never a token of
    probability 0: there the sum does not grow.
    """
    cumulative = probs.double().cumsum_(-1)
    return torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)[:, 0]
