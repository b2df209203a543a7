# Takes the best token before the penalties.
# caught by: sample
import torch


def sample(logits: torch.Tensor, args: SamplingArgs) -> torch.Tensor:
    logits = logits.float()
    best, tokens = logits.max(dim=-1)
    if args.penalties:
        logits = logits.clone()
        for penalty in args.penalties:
            apply_penalty(logits[penalty.row], penalty)
    if args.filters is not None:
        drawn = draw(filtered_probs(logits, args.filters), args.filters.uniform)
        tokens = torch.where(args.filters.greedy[:, 0], tokens, drawn)
    return torch.where(best.isfinite(), tokens, NO_TOKEN).int()
