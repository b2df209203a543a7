# Applies the repetition penalty once per occurrence.
# caught by: edge
import torch


def apply_penalty(scores: torch.Tensor, penalty: Penalty) -> None:
    params, generated = penalty.params, penalty.generated_ids
    every = torch.cat([penalty.prompt_ids, generated])
    times = torch.zeros_like(scores).index_add_(0, every, torch.ones_like(every).float())
    seen = times > 0
    factor = float(params.repetition_penalty) ** times
    repeated = torch.where(scores > 0, scores / factor, scores * factor)
    # Infinite scores would make a softmax of no numbers.
    scores.copy_(torch.where(seen, repeated.nan_to_num(), scores))
    counts = torch.zeros_like(scores).index_add_(0, generated, torch.ones_like(generated).float())
    scores -= params.presence_penalty * (counts > 0) + params.frequency_penalty * counts
