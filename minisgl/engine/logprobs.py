"""What the model itself thought of the tokens that were chosen."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from minisgl.engine.sample import SamplingArgs


@dataclass(frozen=True)
class TokenLogprob:
    """Natural-log probability of a token under the raw logits, and of the best ones beside it."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]  # (token id, log probability), best first


@dataclass(frozen=True)
class BatchLogprobs:
    """Log probabilities of the rows that ask for them, still on the device."""

    num_logprobs: list[int | None]  # per row of the batch
    chosen: torch.Tensor  # fp32 [num_asking], of the sampled tokens
    top_values: torch.Tensor  # fp32 [num_asking, most]
    top_ids: torch.Tensor  # int64 [num_asking, most]

    def to_host(self) -> BatchLogprobs:
        """The same on the CPU; on a GPU the copies are queued, and not there yet."""
        figures = map(to_host, (self.chosen, self.top_values, self.top_ids))
        return BatchLogprobs(self.num_logprobs, *figures)

    def read(self, token_ids: list[int]) -> list[TokenLogprob | None]:
        """One entry per row of the batch, None for rows that did not ask."""
        chosen, values, ids = (x.tolist() for x in (self.chosen, self.top_values, self.top_ids))
        asking = iter(zip(chosen, values, ids, strict=True))
        result: list[TokenLogprob | None] = []
        for token_id, count in zip(token_ids, self.num_logprobs, strict=True):
            if count is None:
                result.append(None)
                continue
            logprob, row_values, row_ids = next(asking)
            top = tuple(zip(row_ids[:count], row_values[:count], strict=True))
            result.append(TokenLogprob(token_id, logprob, top))
        return result


def to_host(x: torch.Tensor) -> torch.Tensor:
    """`x` on the CPU; from a GPU it comes into pinned memory, and the copy is only queued."""
    if not x.is_cuda:
        return x.cpu()
    return torch.empty_like(x, device="cpu", pin_memory=True).copy_(x, non_blocking=True)


def token_logprobs(
    logits: torch.Tensor, tokens: torch.Tensor, args: SamplingArgs
) -> BatchLogprobs | None:
    """Log probabilities under the logits as the model gave them; None where no row asks."""
    counts = {row: n for row, n in enumerate(args.num_logprobs) if n is not None}
    if not counts:
        return None
    rows = torch.tensor(list(counts), device=logits.device)
    logprobs = logits[rows].float().log_softmax(-1)
    top = logprobs.topk(min(max(counts.values()), logprobs.shape[-1]))
    ids = tokens[rows].clamp(min=0)[:, None].long()  # NO_TOKEN is an error elsewhere
    chosen = logprobs.gather(-1, ids)[:, 0]
    return BatchLogprobs(args.num_logprobs, chosen, top.values, top.indices)
