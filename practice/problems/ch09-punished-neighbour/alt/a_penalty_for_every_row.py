# Every request has its penalty, most of which change nothing: then both ways of counting agree.
import torch


def make_args(
    reqs: list[Req], token_pool: torch.Tensor, vocab_size: int, seed: int
) -> SamplingArgs:
    params = [req.sampling_params for req in reqs]
    filters = None
    if not all(p.is_greedy for p in params):
        uniforms = [_uniform_of(req, seed) for req in reqs]
        filters = make_filters(params, uniforms, vocab_size, token_pool.device)
    penalties: list[Penalty] = []
    for req in reqs:
        known = token_pool[req.table_idx, : req.device_len].long()
        parts = known[: req.prompt_len], known[req.prompt_len :]
        penalties.append(Penalty(len(penalties), req.sampling_params, *parts))
    return SamplingArgs(filters, penalties, [p.logprobs for p in params])


def apply_penalty(scores: torch.Tensor, penalty: Penalty) -> None:
    params = penalty.params
    counts = torch.bincount(penalty.generated_ids, minlength=len(scores))
    known = torch.cat([penalty.prompt_ids, penalty.generated_ids]).unique()
    before = scores[known]
    powers = torch.where(before > 0, -1.0, 1.0)
    scores[known] = before * torch.tensor(float(params.repetition_penalty)).pow(powers)
    scores -= params.presence_penalty * (counts > 0) + params.frequency_penalty * counts
