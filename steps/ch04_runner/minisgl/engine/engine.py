"""The engine: one model, one device, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from minisgl.core import Batch, Context, reset_global_ctx, set_global_ctx
from minisgl.engine.config import EngineConfig, resolve_model
from minisgl.engine.sample import TokenLogprob, sample, token_logprobs
from minisgl.models.weight import load_model


@dataclass(frozen=True)
class ForwardOutput:
    """What a forward pass yields, one entry per request of the batch."""

    next_tokens: torch.Tensor  # int32 [batch_size], on the CPU
    logprobs: list[TokenLogprob | None]


class Engine:
    """Computes batches. Knows nothing of prompts, of text, or of when a request ends."""

    def __init__(self, config: EngineConfig, progress: bool = False) -> None:
        """Load the model; `progress` shows a bar.

        Raises:
            ValueError: there is no such model, or it cannot be computed right.
        """
        self.folder = resolve_model(config.model)
        self.model, self.model_config = load_model(
            self.folder, config.compute_dtype, torch.device(config.device), progress
        )
        self.config = config
        self.ctx = Context(page_size=1)

    @torch.inference_mode()
    def forward_batch(self, batch: Batch) -> ForwardOutput:
        """Compute the tokens of the one request in the batch, and choose its next.

        `batch.input_ids` and `batch.positions` must be filled in.
        """
        assert batch.size == 1, "dense attention takes all tokens of a batch for one text"
        with self._entered(batch):
            logits = self.model.forward()
        tokens = sample(logits, batch, self.config.seed).cpu()
        return ForwardOutput(tokens, token_logprobs(logits, tokens, batch.reqs))

    @contextmanager
    def _entered(self, batch: Batch) -> Iterator[None]:
        """Make this engine's context the process's, so that several engines can live in one."""
        set_global_ctx(self.ctx)
        try:
            with self.ctx.forward_batch(batch):
                yield
        finally:
            reset_global_ctx()
