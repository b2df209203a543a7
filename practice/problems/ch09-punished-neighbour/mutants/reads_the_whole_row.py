# Reads the row of the token pool to its end, where others' tokens lie.
# caught by: edge
import torch


def make_args(
    reqs: list[Req], token_pool: torch.Tensor, vocab_size: int, seed: int
) -> SamplingArgs:
    params = [req.sampling_params for req in reqs]
    filters = None
    if not all(p.is_greedy for p in params):
        uniforms = [_uniform_of(req, seed) for req in reqs]
        filters = make_filters(params, uniforms, vocab_size, token_pool.device)
    penalties = []
    for row, req in enumerate(reqs):
        if req.sampling_params.has_penalties:
            known = token_pool[req.table_idx].long()
            parts = known[: req.prompt_len], known[req.prompt_len :]
            penalties.append(Penalty(row, req.sampling_params, *parts))
    return SamplingArgs(filters, penalties, [p.logprobs for p in params])
