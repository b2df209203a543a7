"""The static scheduler: whoever waits becomes a batch, and nobody joins it while it runs."""

from __future__ import annotations

from collections import deque

import torch

from minisgl.core import Batch, Req
from minisgl.engine.engine import Engine, ForwardOutput
from minisgl.engine.sample import make_args
from minisgl.kvcache.manager import CacheManager
from minisgl.scheduler.request import Request, finish_reason
from minisgl.scheduler.table import TableManager


class StaticScheduler:
    """Takes requests from `add` to their last token, one step at a time.

    One thread at a time may add and step; any may abort.
    """

    def __init__(self, engine: Engine, eos_ids: frozenset[int]) -> None:
        self.engine = engine
        self._eos_ids = eos_ids
        self._waiting: deque[Request] = deque()
        self._running: list[Request] = []
        self._aborted: deque[int] = deque()
        self._in_step = False
        page_table = engine.ctx.page_table
        self._table = TableManager(page_table)
        self._cache = CacheManager(engine.num_pages, engine.config.page_size, page_table)

    def add(self, request: Request) -> None:
        """Let a request wait for the next batch."""
        self._waiting.append(request)

    def abort(self, uid: int) -> None:
        """End a request before the next step; one that has ended already is left alone.

        It is only noted here: a stream that nobody reads any more may be dropped anywhere, in
        the middle of a step too.
        """
        self._aborted.append(uid)

    def step(self) -> None:
        """Compute a token for each request of the batch; without a batch, form one first."""
        self._recover()
        self._in_step = True
        self._drop_aborted()
        if not self._running:
            self._admit()
        if self._running:
            self._compute()
        self._end([entry for entry in self._running if entry.finish_reason is not None])
        self._in_step = False

    def check_invariants(self) -> None:
        """Assert that each row and each page is free, or belongs to one request."""
        self._recover()
        reqs = [request.req for request in self._running]
        self._table.check_invariants(reqs)
        self._cache.check_invariants(reqs)

    def _recover(self) -> None:
        """End the batch of a step that raised; a Ctrl-C does that anywhere.

        Nothing is known of the rows and pages that it was about to give or take, so all are free.
        """
        if self._in_step:
            for request in self._running:
                request.finish_reason = "error"
            self._running = []
            self._table.reset()
            self._cache.reset()
            self._in_step = False

    def _drop_aborted(self) -> None:
        if not self._aborted:
            return
        aborted = {self._aborted.popleft() for _ in range(len(self._aborted))}
        self._waiting = deque(entry for entry in self._waiting if entry.uid not in aborted)
        self._end([entry for entry in self._running if entry.uid in aborted])

    def _end(self, leaving: list[Request]) -> None:
        """Remove requests from the batch and free what they hold."""
        for request in leaving:
            self._cache.free(request.req)
            self._table.free(request.req.table_idx)
            self._running.remove(request)

    def _admit(self) -> None:
        """The first that wait become the batch, while rows and pages last."""
        while self._waiting and self._start(self._waiting[0]):
            self._running.append(self._waiting[0])
            self._waiting.popleft()

    def _start(self, request: Request) -> bool:
        """Give a request its row and pages, unless it does not fit beside the batch."""
        if not self._table.num_free_rows:
            return False
        table_idx = self._table.allocate()
        # The last token is only ever an output: it needs no place.
        num_tokens = len(request.input_ids) + request.output_len - 1
        handle = self._cache.reserve(table_idx, request.input_ids, num_tokens)
        if handle is None:
            self._table.free(table_idx)
            return False
        request.req = Req(
            input_ids=torch.tensor(request.input_ids, dtype=torch.int32),
            table_idx=table_idx,
            cached_len=handle.cached_len,
            output_len=request.output_len,
            uid=request.uid,
            sampling_params=request.sampling_params,
            cache_handle=handle,
        )
        request.num_cached_tokens = handle.cached_len
        self._table.token_pool[table_idx, : len(request.input_ids)] = request.req.input_ids
        return True

    def _compute(self) -> None:
        """One more token for each request, all in one forward pass."""
        output = self._forward([request.req for request in self._running])
        next_tokens = output.next_tokens.cpu()
        if output.logprobs is not None:
            logprobs = output.logprobs.read(next_tokens.tolist())
            for request, logprob in zip(self._running, logprobs, strict=True):
                if logprob is not None:
                    request.logprobs.append(logprob)
        for index, request in enumerate(self._running):
            self._accept(request, next_tokens[index : index + 1])

    def _forward(self, reqs: list[Req]) -> ForwardOutput:
        """Launch a pass; its tokens become the next inputs without leaving the device."""
        batch, rows = self._make_batch(reqs)
        output = self.engine.forward_batch(batch)
        last = batch.logits_rows
        self._table.token_pool[rows[last], batch.positions[last] + 1] = output.next_tokens
        for req in reqs:
            req.complete_one()
            if batch.is_prefill:
                self._cache.cache_req(req)
        return output

    def _make_batch(self, reqs: list[Req]) -> tuple[Batch, torch.Tensor]:
        """The tokens that have no KV yet, end to end, and for each the row of its request."""
        is_decode = all(req.extend_len == 1 for req in reqs)
        batch = Batch(reqs, "decode" if is_decode else "prefill")
        device = self.engine.config.device
        lengths = torch.tensor([req.extend_len for req in reqs])
        rows = torch.tensor([req.table_idx for req in reqs]).repeat_interleave(lengths).to(device)
        positions = [torch.arange(req.cached_len, req.device_len) for req in reqs]
        batch.positions = torch.cat(positions).to(device)
        batch.input_ids = self._table.token_pool[rows, batch.positions]
        batch.out_loc = self._table.page_table[rows, batch.positions]
        batch.logits_rows = (lengths.cumsum(0) - 1).to(device)
        vocab_size, seed = self.engine.model_config.vocab_size, self.engine.config.seed
        batch.sampling_args = make_args(reqs, self._table.token_pool, vocab_size, seed)
        return batch, rows

    def _accept(self, request: Request, next_token: torch.Tensor) -> None:
        """Take over a sampled token, int32 `[1]` on the CPU; a RuntimeError where it is none."""
        if next_token < 0:
            raise RuntimeError(f"request {request.uid}: NaN or infinite scores, check the weights")
        request.req.append_host(next_token)
        request.token_ids.append(int(next_token))
        request.finish_reason = finish_reason(request.req, self._eos_ids)
