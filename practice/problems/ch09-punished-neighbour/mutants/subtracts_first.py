# Subtracts first, and then divides or multiplies what is left.
# caught by: edge
import torch


def apply_penalty(scores: torch.Tensor, penalty: Penalty) -> None:
    params, generated = penalty.params, penalty.generated_ids
    seen = torch.zeros_like(scores, dtype=torch.bool)
    seen[penalty.prompt_ids] = True
    seen[generated] = True
    counts = torch.zeros_like(scores).index_add_(0, generated, torch.ones_like(generated).float())
    scores -= params.presence_penalty * (counts > 0) + params.frequency_penalty * counts
    factor = float(params.repetition_penalty)
    repeated = torch.where(scores > 0, scores / factor, scores * factor)
    scores.copy_(torch.where(seen, repeated.nan_to_num(), scores))
