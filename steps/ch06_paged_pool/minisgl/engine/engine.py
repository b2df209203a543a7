"""The engine: one model, one device, one batch at a time."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import torch

from minisgl.core import Batch, Context, reset_global_ctx, set_global_ctx
from minisgl.engine.config import DEFAULT_MAX_SEQ_LEN, EngineConfig
from minisgl.engine.sample import sample
from minisgl.kvcache.pool import PagedKVPool
from minisgl.models.config import ModelConfig
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
        self.max_seq_len, self.num_pages = _sizes(config, self.model_config)
        self.ctx = Context(page_size=config.page_size)
        try:
            self._allocate()
        except RuntimeError as error:  # of torch's allocator
            raise ValueError(
                f"{self.num_pages} pages of {config.page_size} tokens, and a page table of "
                f"{config.max_running_reqs} rows of {self.max_seq_len}, must fit in memory: lower "
                "num_pages, max_running_reqs or max_seq_len"
            ) from error

    def _allocate(self) -> None:
        config, device = self.config, torch.device(self.config.device)
        self.ctx.page_table = torch.zeros(
            config.max_running_reqs, self.max_seq_len, dtype=torch.int32, device=device
        )
        self.ctx.kv_cache = PagedKVPool(
            num_pages=self.num_pages,
            page_size=config.page_size,
            num_layers=self.model_config.num_layers,
            num_kv_heads=self.model_config.num_kv_heads,
            head_dim=self.model_config.head_dim,
            dtype=config.compute_dtype,
            device=device,
        )

    @torch.inference_mode()
    def forward_batch(self, batch: Batch) -> ForwardOutput:
        """Compute the tokens of the one request in the batch, and choose its next.

        The scheduler must have set its fields of the batch.
        """
        assert batch.size == 1, "dense attention takes all tokens of a batch for one text"
        reset_global_ctx()  # an interrupted pass may have left its own …
        ctx = copy(self.ctx)  # … and a batch in its context
        try:
            set_global_ctx(ctx)
            with ctx.forward_batch(batch):
                logits = self.model.forward()
        finally:
            reset_global_ctx()
        return ForwardOutput(sample(logits, batch.sampling_args))


def _sizes(config: EngineConfig, model_config: ModelConfig) -> tuple[int, int]:
    """The longest request, in tokens, and the number of pages; what is asked for must fit."""
    context = model_config.max_position_embeddings
    longest = config.max_seq_len or min(context, DEFAULT_MAX_SEQ_LEN)
    num_pages = config.num_pages or -(-4 * longest // config.page_size)
    # The last token of a request is never computed, so it needs no place.
    room = min(context, num_pages * config.page_size + 1)
    if config.max_seq_len is not None and config.max_seq_len > room:
        raise ValueError(
            f"max_seq_len must be at most {room} tokens, what the model's context ({context}) and "
            f"{num_pages} pages of {config.page_size} allow, got {config.max_seq_len}"
        )
    return min(longest, room), num_pages
