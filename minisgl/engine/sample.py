"""From logits to tokens: penalties, filters, and randomness that depends on the request alone.

    logits ─ penalties ─┬─ argmax ───────────────────────────────── rows that are greedy
                        └─ temperature ─ softmax ─ top-k ─ top-p ─ min-p ─ draw ── the others

Every step treats a row without looking at its neighbours, so a request gets the same tokens
alone and in any batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from minisgl.core import Batch, Req

_MASK = (1 << 64) - 1
_FIRST_CANDIDATES = 256
_BIN_SHIFT = 16  # leaves the exponent and seven more bits: bins are at most 0.8 % wide
_COLDEST = 1e-30  # below about 1e-38 fp32 would round a temperature to 0, and 0 / 0 is NaN


@dataclass(frozen=True)
class TokenLogprob:
    """Natural-log probability of a token under the raw logits, and of the best ones beside it."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]  # (token id, log probability), best first


@dataclass(frozen=True)
class Filters:
    """The parameters of a batch, each `[batch_size, 1]`; float64 where no other type is given."""

    greedy: torch.Tensor  # bool
    temperature: torch.Tensor  # 1 in greedy rows
    top_k: torch.Tensor  # int64, vocab_size where off
    top_p: torch.Tensor  # 1 where off
    min_p: torch.Tensor  # 0 where off
    uniform: torch.Tensor  # the random number of this token, in [0, 1)


def sample(logits: torch.Tensor, batch: Batch, seed: int) -> torch.Tensor:
    """Choose a token per request: `[batch_size, vocab_size]` to int32 `[batch_size]`.

    `seed` is the engine's.
    """
    logits = logits.float()
    if any(req.sampling_params.has_penalties for req in batch.reqs):
        logits = logits.clone()
        apply_penalties(logits, batch.reqs)
    best = logits.argmax(dim=-1)
    if all(req.sampling_params.is_greedy for req in batch.reqs):
        return best.int()
    filters = make_filters(batch.reqs, logits.shape[-1], seed, logits.device)
    drawn = draw(filtered_probs(logits, filters), filters.uniform)
    return torch.where(filters.greedy[:, 0], best, drawn).int()


def apply_penalties(logits: torch.Tensor, reqs: list[Req]) -> None:
    """Lower (or raise) the scores of tokens that a request has seen, in place.

    Repetition as in Keskar et al., "CTRL" (2019); presence and frequency as OpenAI defines them.
    """
    for row, req in zip(logits, reqs, strict=True):
        params = req.sampling_params
        if not params.has_penalties:
            continue
        ids = req.input_ids.to(row.device)
        seen = ids.unique()
        factor, scores = float(params.repetition_penalty), row[seen]
        scores = torch.where(scores > 0, scores / factor, scores * factor)
        row[seen] = scores.nan_to_num()  # infinite scores would make a softmax of no numbers
        generated, counts = ids[req.prompt_len :].unique(return_counts=True)
        row[generated] -= params.presence_penalty + params.frequency_penalty * counts


def make_filters(reqs: list[Req], vocab_size: int, seed: int, device: torch.device) -> Filters:
    """The parameters of a batch as tensors; the engine's `seed` serves requests without one."""

    def column(values: Sequence[float], dtype: torch.dtype = torch.float64) -> torch.Tensor:
        return torch.tensor(values, dtype=dtype, device=device)[:, None]

    params = [req.sampling_params for req in reqs]
    greedy = [p.temperature <= 0 or p.top_k == 1 for p in params]
    temperatures = [max(p.temperature, _COLDEST) for p in params]
    top_ks = [min(p.top_k, vocab_size) if p.top_k > 0 else vocab_size for p in params]
    return Filters(
        greedy=column(greedy, torch.bool),
        temperature=column([1.0 if g else t for g, t in zip(greedy, temperatures, strict=True)]),
        top_k=column(top_ks, torch.int64),
        top_p=column([p.top_p for p in params]),
        min_p=column([p.min_p for p in params]),
        uniform=column([_uniform_of(req, seed) for req in reqs]),
    )


def filtered_probs(logits: torch.Tensor, filters: Filters) -> torch.Tensor:
    """Probabilities `[batch_size, vocab_size]`, 0 for what a filter removes; not renormalised.

    A filter keeps the tokens whose probability reaches a threshold, so tokens of equal
    probability stay or go together and no order among them matters.
    """
    # The best score becomes 0 first: a tiny temperature would overflow.
    shifted = logits - logits.amax(-1, keepdim=True)
    probs = shifted.div_(filters.temperature.float()).softmax(-1)
    if (filters.top_k < probs.shape[-1]).any():
        _drop_below(top_k_threshold(probs, filters.top_k), probs)
    if (filters.top_p < 1).any():
        _drop_below(top_p_threshold(probs, filters.top_p), probs)
    if (filters.min_p > 0).any():
        _drop_below(probs.amax(-1, keepdim=True) * filters.min_p.float(), probs)
    return probs


def _drop_below(threshold: torch.Tensor, probs: torch.Tensor) -> None:
    probs.masked_fill_(probs < threshold, 0.0)


def top_k_threshold(probs: torch.Tensor, top_k: torch.Tensor) -> torch.Tensor:
    """The k-th largest probability of each row, 0 where `top_k` is the whole vocabulary."""
    limited = top_k < probs.shape[-1]
    most = int(top_k[limited].max())
    kth = probs.topk(most).values.gather(-1, top_k.clamp(max=most) - 1)
    return torch.where(limited, kth, 0.0)


def top_p_threshold(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """The probability of the token with which the best ones' sum first reaches `top_p`, or 0.

    That token stays (nucleus sampling: Holtzman et al., 2019). Sorting the whole vocabulary would
    cost more than all the rest. The best few hundred tokens are enough for most rows; the others
    are settled one by one, so the answer is exact.
    """
    wanted = top_p * probs.sum(-1, keepdim=True, dtype=torch.float64)
    best = probs.topk(min(_FIRST_CANDIDATES, probs.shape[-1])).values
    count = best.shape[-1]
    crossing = (best.cumsum(-1, dtype=torch.float64) < wanted).sum(-1, keepdim=True)
    threshold = best.gather(-1, crossing.clamp(max=count - 1))
    for row in ((crossing == count) & (top_p < 1)).nonzero()[:, 0].tolist():
        threshold[row] = _crossing(probs[row], wanted[row])
    return torch.where(top_p < 1, threshold, 0.0)


def _crossing(probs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The same for a single row `[vocab_size]` with a nucleus of any size.

    Probabilities are put into bins, and only the bin in which the sum crosses is sorted. The high
    bits of a float are its bin: positive floats and their bits, read as integers, order alike.
    """
    bins = probs.view(torch.int32) >> _BIN_SHIFT
    sums = bins.bincount(probs.double()).flip(0)
    reached = sums.cumsum(0)
    wanted = wanted.minimum(reached[-1])  # sums in different orders differ in their last digits
    crossed = (reached < wanted).sum()
    inside = probs[bins == len(sums) - 1 - crossed].sort(descending=True).values
    reached = reached[crossed] - sums[crossed] + inside.cumsum(0, dtype=torch.float64)
    return inside[(reached < wanted).sum().clamp(max=len(inside) - 1)]


def draw(probs: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """The token at which the running sum of a row passes its share `uniform`: `[batch_size]`.

    One random number per token instead of one per entry of the vocabulary, and never a token of
    probability 0: there the sum does not grow.
    """
    cumulative = probs.double().cumsum_(-1)
    return torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)[:, 0]


def _uniform_of(req: Req, seed: int) -> float:
    """The random number of the token that this pass yields.

    It depends on the request's seed and the token's index, not on a generator's state: the token
    is the same in any batch, and after the request has been interrupted and computed again.
    """
    own = req.sampling_params.seed
    index = req.device_len - req.prompt_len
    return uniform(mix(seed, req.uid) if own is None else own, index)


def uniform(seed: int, index: int) -> float:
    """A number in [0, 1) that `seed` and `index` determine, with 40 random bits."""
    return (mix(seed, index) >> 24) / (1 << 40)


def mix(seed: int, index: int) -> int:
    """A 64-bit hash of two integers, whose bits look independent for neighbouring inputs.

    Two rounds of the finaliser of SplitMix64: Steele, Lea and Flood, "Fast Splittable
    Pseudorandom Number Generators" (2014).
    """
    return _finalise((_finalise(seed) + index) & _MASK)


def _finalise(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def token_logprobs(
    logits: torch.Tensor, tokens: torch.Tensor, reqs: list[Req]
) -> list[TokenLogprob | None]:
    """Log probabilities for the requests that ask, under the logits as the model gave them."""
    result: list[TokenLogprob | None] = []
    for row, token, req in zip(logits, tokens.tolist(), reqs, strict=True):
        count = req.sampling_params.logprobs
        if count is None:
            result.append(None)
            continue
        logprobs = row.float().log_softmax(-1)
        top = logprobs.topk(min(count, len(logprobs)))
        pairs = tuple(zip(top.indices.tolist(), top.values.tolist(), strict=True))
        result.append(TokenLogprob(token, float(logprobs[token]), pairs))
    return result
