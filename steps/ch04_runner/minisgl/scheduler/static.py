"""The static scheduler: whoever waits becomes a batch, and nobody joins it while it runs."""

from __future__ import annotations

from collections import deque

import torch

from minisgl.core import Batch, Req
from minisgl.engine.engine import Engine
from minisgl.engine.sample import SamplingArgs, make_generator
from minisgl.scheduler.request import Request, finish_reason


class StaticScheduler:
    """Takes requests from `add` to their last token, one step at a time."""

    def __init__(self, engine: Engine, eos_ids: frozenset[int]) -> None:
        self.engine = engine
        self._eos_ids = eos_ids
        self._waiting: deque[Request] = deque()
        self._running: list[Request] = []

    def add(self, request: Request) -> None:
        """Let a request wait for the next batch."""
        self._waiting.append(request)

    def abort(self, uid: int) -> None:
        """Forget a request; one that has ended already is left alone."""
        self._waiting = deque(entry for entry in self._waiting if entry.uid != uid)
        self._running = [entry for entry in self._running if entry.uid != uid]

    def step(self) -> None:
        """Compute a token for each request of the batch; without a batch, form one first."""
        if not self._running:
            self._running = [self._start(request) for request in self._waiting]
            self._waiting.clear()
        batch, self._running = self._running, []  # a step that raises ends its batch
        for request in batch:
            self._compute(request)
        self._running = [request for request in batch if request.finish_reason is None]

    def _start(self, request: Request) -> Request:
        request.req = Req(
            input_ids=torch.tensor(request.input_ids, dtype=torch.int32),
            table_idx=0,
            cached_len=0,
            output_len=request.output_len,
            uid=request.uid,
            sampling_params=request.sampling_params,
            cache_handle=None,
        )
        config = self.engine.config
        request.generator = make_generator(request.req, config.seed, config.device)
        return request

    def _compute(self, request: Request) -> None:
        """One more token, from the whole text."""
        req, device = request.req, self.engine.config.device
        batch = Batch([req], "prefill")
        batch.input_ids = req.input_ids.to(device)
        batch.positions = torch.arange(req.device_len, device=device)
        batch.logits_rows = torch.tensor([req.device_len - 1], device=device)
        batch.sampling_args = SamplingArgs([req.sampling_params], [request.generator])
        next_token = self.engine.forward_batch(batch).next_tokens.cpu()
        req.device_len += 1  # and cached_len stays 0: the next pass computes the whole text
        self._accept(request, next_token)

    def _accept(self, request: Request, next_token: torch.Tensor) -> None:
        """Take over a sampled token, int32 `[1]` on the CPU; a RuntimeError where it is none."""
        if next_token < 0:
            raise RuntimeError(f"request {request.uid}: NaN or infinite scores, check the weights")
        request.req.append_host(next_token)
        request.token_ids.append(int(next_token))
        request.finish_reason = finish_reason(request.req, self._eos_ids)
