# Divides negative scores too, which makes them better.
# caught by: basic
import torch


def apply_penalty(scores: torch.Tensor, penalty: Penalty) -> None:
    params, generated = penalty.params, penalty.generated_ids
    seen = torch.zeros_like(scores, dtype=torch.bool)
    seen[penalty.prompt_ids] = True
    seen[generated] = True
    factor = float(params.repetition_penalty)
    repeated = torch.where(scores > 0, scores / factor, scores / factor)
    # Infinite scores would make a softmax of no numbers.
    scores.copy_(torch.where(seen, repeated.nan_to_num(), scores))
    counts = torch.zeros_like(scores).index_add_(0, generated, torch.ones_like(generated).float())
    scores -= params.presence_penalty * (counts > 0) + params.frequency_penalty * counts
