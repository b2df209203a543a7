"""From logits to tokens, one row after another."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from minisgl.core import Req, SamplingParams

NO_TOKEN = -1  # in place of a token whose scores are NaN or infinite


@dataclass(frozen=True)
class SamplingArgs:
    """What the sampler needs to know of a batch, an entry per request."""

    params: list[SamplingParams]
    generators: list[torch.Generator]  # each draws for its request alone


def make_generator(req: Req, seed: int, device: str) -> torch.Generator:
    """The source of randomness of a request; the engine's `seed` serves one without its own."""
    own = req.sampling_params.seed
    return torch.Generator(device).manual_seed(seed + req.uid if own is None else own)


def sample(logits: torch.Tensor, args: SamplingArgs) -> torch.Tensor:
    """Choose a token per row: `[batch_size, vocab_size]` to int32 `[batch_size]`.

    A row whose best score is NaN or infinite gets `NO_TOKEN`.
    """
    logits = logits.float()
    best, tokens = logits.max(dim=-1)
    if not all(params.is_greedy for params in args.params):
        rows = zip(logits, args.params, args.generators, strict=True)
        tokens = torch.stack([choose(*row) for row in rows])
    return torch.where(best.isfinite(), tokens, NO_TOKEN).int()


def choose(
    logits: torch.Tensor, params: SamplingParams, generator: torch.Generator
) -> torch.Tensor:
    """A token of one row `[vocab_size]`, as a tensor without dimensions.

    Nucleus sampling, `top_p`: Holtzman et al., "The Curious Case of Neural Text Degeneration"
    (2019).
    """
    if params.temperature <= 0 or params.top_k == 1:
        return logits.argmax()
    # Relative to the best score, which a tiny temperature would make infinite; and a temperature
    # that fp32 rounds to 0 would make it NaN.
    scores = (logits - logits.max()) / max(float(params.temperature), 1e-30)
    probs, tokens = scores.nan_to_num().softmax(-1).sort(descending=True)
    if params.top_k > 0:
        probs[params.top_k :] = 0
    before = probs.cumsum(-1)[:-1]  # of all tokens more probable than the second, the third, …
    probs[1:][before >= params.top_p * probs.sum()] = 0  # the token that crosses top_p stays
    return tokens[torch.multinomial(probs, 1, generator=generator)[0]]
