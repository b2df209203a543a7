"""The engine: one model, one device, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from minisgl.core import Batch, Context, reset_global_ctx, set_global_ctx
from minisgl.engine.config import DEFAULT_MAX_SEQ_LEN, EngineConfig, resolve_model
from minisgl.engine.sample import TokenLogprob, sample, token_logprobs
from minisgl.kvcache.pool import PagedKVPool
from minisgl.models.config import ModelConfig
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
        self.max_seq_len, self.num_pages = _sizes(config, self.model_config)
        device = torch.device(config.device)
        self.ctx = Context(page_size=config.page_size)
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

        `batch.input_ids`, `batch.positions` and `batch.out_loc` must be filled in.
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


def _sizes(config: EngineConfig, model_config: ModelConfig) -> tuple[int, int]:
    """The longest request, in tokens, and the number of pages; what is asked for must fit."""
    context = model_config.max_position_embeddings
    longest = config.max_seq_len or min(context, DEFAULT_MAX_SEQ_LEN)
    num_pages = config.num_pages or -(-4 * longest // config.page_size)
    room = min(context, num_pages * config.page_size)
    if config.max_seq_len is not None and config.max_seq_len > room:
        raise ValueError(
            f"max_seq_len must be at most {room} tokens, what the model's context ({context}) and "
            f"{num_pages} pages of {config.page_size} allow, got {config.max_seq_len}"
        )
    return min(longest, room), num_pages
