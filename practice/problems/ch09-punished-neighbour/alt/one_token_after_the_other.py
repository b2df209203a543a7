# Rows by enumerating first and choosing then; the penalties by counting in a dict.
from collections import Counter

import torch


def make_args(
    reqs: list[Req], token_pool: torch.Tensor, vocab_size: int, seed: int
) -> SamplingArgs:
    params = [req.sampling_params for req in reqs]
    filters = None
    if not all(p.is_greedy for p in params):
        uniforms = [_uniform_of(req, seed) for req in reqs]
        filters = make_filters(params, uniforms, vocab_size, token_pool.device)
    penalties = [_penalty(row, req, token_pool) for row, req in enumerate(reqs)]
    asked = [one for one in penalties if one.params.has_penalties]
    return SamplingArgs(filters, asked, [p.logprobs for p in params])


def _penalty(row: int, req: Req, token_pool: torch.Tensor) -> Penalty:
    text = token_pool[req.table_idx]
    prompt, generated = text[: req.prompt_len], text[req.prompt_len : req.device_len]
    return Penalty(row, req.sampling_params, prompt.clone(), generated.clone())


def apply_penalty(scores: torch.Tensor, penalty: Penalty) -> None:
    params, counts = penalty.params, Counter(penalty.generated_ids.tolist())
    for token in {*penalty.prompt_ids.tolist(), *counts}:
        score = float(scores[token])
        factor = params.repetition_penalty
        score = score / factor if score > 0 else score * factor
        if token in counts:
            score -= params.presence_penalty + params.frequency_penalty * counts[token]
        scores[token] = score
