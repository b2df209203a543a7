"""The engine: one model, one device, one batch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from minisgl.core import Batch, Context, reset_global_ctx, set_global_ctx
from minisgl.engine.config import EngineConfig
from minisgl.engine.sample import sample
from minisgl.models.folder import resolve_model
from minisgl.models.weight import load_model


@dataclass(frozen=True)
class ForwardOutput:
    """What a forward pass yields, one entry per row of logits."""

    next_tokens: torch.Tensor  # int32 [num_sampled], on the device; NO_TOKEN without scores


class Engine:
    """Computes batches. Knows nothing of prompts, of text, or of when a request ends."""

    def __init__(self, config: EngineConfig, progress: bool = False) -> None:
        """Load the model; `progress` shows a bar.

        Raises:
            ValueError: there is no such model, or it cannot be computed correctly.
        """
        self.folder = resolve_model(config.model)
        self.model, self.model_config = load_model(
            self.folder, config.compute_dtype, config.device, progress
        )
        self.config = config
        self.max_seq_len = self.model_config.max_position_embeddings
        self.ctx = Context(page_size=1)

    @torch.inference_mode()
    def forward_batch(self, batch: Batch) -> ForwardOutput:
        """Compute the tokens of the one request in the batch, and choose its next.

        The scheduler must have set its fields of the batch.
        """
        assert batch.size == 1, "dense attention takes all tokens of a batch for one text"
        set_global_ctx(self.ctx)
        try:
            with self.ctx.forward_batch(batch):
                logits = self.model.forward()
        finally:
            reset_global_ctx()
        return ForwardOutput(sample(logits, batch.sampling_args))
