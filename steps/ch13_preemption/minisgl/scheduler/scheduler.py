"""The scheduler: every step computes a token for those who run, and a piece of what comes."""

from __future__ import annotations

from collections import deque
from itertools import count
from traceback import clear_frames
from typing import Any

import torch

from minisgl.core import Batch, Req
from minisgl.engine.engine import Engine, ForwardOutput
from minisgl.engine.logprobs import TokenLogprob
from minisgl.engine.sample import make_args
from minisgl.kvcache.manager import CacheManager
from minisgl.scheduler.decode import DecodeManager
from minisgl.scheduler.lifecycle import FinishReason, State
from minisgl.scheduler.policy import POLICIES
from minisgl.scheduler.prefill import PrefillManager
from minisgl.scheduler.request import Request, finish_reason
from minisgl.scheduler.table import TableManager
from minisgl.scheduler.trace import Trace


class Scheduler:
    """Takes requests from `add` to their end, one step at a time.

    One thread at a time may add and step; any may abort. The scheduler reads no clock: the time
    and the aborts are inputs of a step, so equal inputs give equal batches.
    """

    def __init__(self, engine: Engine, eos_ids: frozenset[int]) -> None:
        self.engine = engine
        self.trace: Trace | None = None  # set it to record what happens
        self._eos_ids = eos_ids
        self._aborted: deque[int] = deque()
        self._in_step = False
        self._numbers = count()
        page_table, page_size = engine.ctx.page_table, engine.config.page_size
        self._table = TableManager(page_table)
        self._cache = CacheManager(engine.num_pages, page_size, page_table)
        policy = POLICIES[engine.config.schedule_policy]()
        self._prefill = PrefillManager(self._table, self._cache, page_size, policy)
        self._decode = DecodeManager()

    def add(self, request: Request) -> None:
        """Let a request wait for its turn.

        Raises:
            ValueError: it is longer than any request may be.
        """
        length = len(request.input_ids) + request.output_len
        if length > self.engine.max_seq_len:
            raise ValueError(
                f"a request, its output included, must have at most {self.engine.max_seq_len} "
                f"tokens, got {length}: shorten it, or set max_seq_len and num_pages higher"
            )
        live = self._prefill.waiting, self._prefill.running, self._decode.running
        assert not any(request.uid in one for one in live), f"request {request.uid} exists already"
        request.number = next(self._numbers)
        self._prefill.waiting[request.uid] = request
        self._record("add", uid=request.uid, num_tokens=len(request.input_ids))

    def abort(self, uid: int) -> None:
        """End a request at the next step; one that has ended already is left alone.

        It is only noted here: a stream that nobody reads any more may be dropped anywhere, in
        the middle of a step too.
        """
        self._aborted.append(uid)

    def step(self, now: float = 0.0) -> None:
        """Compute one batch: a token for each that decodes, and as much of prompts as has room.

        `now`, in seconds, is the time that deadlines are compared with.
        """
        self._recover()
        self._in_step = True
        self._drop(now)
        self._grow()
        decoding = self._decode.schedule()
        # However many decode, a prompt gets on: by a token at least.
        room = max(1, self.engine.config.max_batch_tokens - len(decoding))
        requests = decoding + self._prefill.schedule(room)
        if requests:
            self._run(requests)
        self._in_step = False

    def check_invariants(self) -> None:
        """Assert that each row and each page is free, the cache's, or belongs to one request."""
        self._recover()
        reqs = [request.req for request in self._running()]
        self._table.check_invariants(reqs)
        self._cache.check_invariants(reqs)

    def _running(self) -> list[Request]:
        """The requests that hold a row and pages."""
        return [*self._prefill.running.values(), *self._decode.running.values()]

    def _recover(self) -> None:
        """End all running requests after a step that raised, as Ctrl-C can do at any line.

        Which rows and pages were changing hands is unknown, so all become free.
        """
        if not self._in_step:
            return
        prefill, decode = self._prefill, self._decode
        for request in [*self._running(), *prefill.waiting.values()]:
            if request.state is not State.WAITING and request.finish_reason is None:
                request.end("error", RuntimeError("its step was interrupted, ask again"))
                self._record("finish", uid=request.uid, reason="error")
        prefill.waiting = {u: r for u, r in prefill.waiting.items() if r.finish_reason is None}
        prefill.running, decode.running = {}, {}
        self._table.reset()
        self._cache.reset()
        self._in_step = False

    def _drop(self, now: float) -> None:
        """End requests that were aborted or are too late."""
        count = len(self._aborted)
        aborted = {self._aborted[n] for n in range(count)}
        for request in [*self._prefill.waiting.values(), *self._running()]:
            if request.uid in aborted:
                self._end(request, "abort")
            elif request.is_late(now):
                self._end(request, "timeout")
        for _ in range(count):  # only now: an interrupt must not lose one
            self._aborted.popleft()

    def _grow(self) -> None:
        """Give all who run places for their next round; the youngest give way where there are none.

        The oldest is served first, and has at worst the whole pool: it gets on in every step, so
        all come to their end.
        """
        running = sorted(self._running(), key=lambda request: request.number)
        for request in running:
            while request.state is not State.WAITING and not self._cache.grow(request.req):
                self._retract(running.pop())  # in the end itself

    def _retract(self, request: Request) -> None:
        """Take a running request's row and pages; it goes on later, from what the cache kept."""
        self._record("retract", uid=request.uid)
        self._prefill.estimate.failed()
        self._prefill.take_back(request)
        request.num_retractions += 1
        request.move(State.WAITING)
        for requests in (self._prefill.running, self._decode.running):
            requests.pop(request.uid, None)
        self._cache.free(request.req)
        self._table.free(request.req.table_idx)

    def _end(self, request: Request, reason: FinishReason, error: Exception | None = None) -> None:
        """End a request and free what it holds; does nothing if it has ended."""
        if request.finish_reason is not None:
            return
        holds = request.state is not State.WAITING
        request.end(reason, error)
        for requests in (self._prefill.waiting, self._prefill.running, self._decode.running):
            requests.pop(request.uid, None)
        if holds:
            # KV of a pass that failed may be wrong: no other request may read it.
            (self._cache.drop if reason == "error" else self._cache.free)(request.req)
            self._table.free(request.req.table_idx)
        self._record("finish", uid=request.uid, reason=reason)

    def _run(self, requests: list[Request]) -> None:
        """Compute a batch and take over its tokens; if that fails, its requests end."""
        sampled = [request for request in requests if not request.req.is_chunk]
        try:
            batch, rows = self._prepare_batch([request.req for request in requests])
            lengths = {req.uid: (req.cached_len, req.device_len) for req in batch.reqs}
            self._record("launch", phase=batch.phase, lengths=lengths)
            output = self._forward(batch, rows)
            next_tokens = output.next_tokens.cpu()
        except Exception as error:
            clear_frames(error.__traceback__)  # its tensors must not live as long as the error
            for request in requests:
                self._end(request, "error", error)
            return
        tokens = next_tokens.tolist()
        self._record("result", tokens=dict(zip([r.uid for r in sampled], tokens, strict=True)))
        logprobs = output.logprobs.read(tokens) if output.logprobs else [None] * len(tokens)
        for request, token, logprob in zip(sampled, next_tokens[:, None], logprobs, strict=True):
            self._accept(request, token, logprob)

    def _prepare_batch(self, reqs: list[Req]) -> tuple[Batch, torch.Tensor]:
        """The tokens that have no KV yet, end to end, and for each the row of its request."""
        is_decode = all(req.extend_len == 1 and not req.is_chunk for req in reqs)
        batch = Batch(reqs, "decode" if is_decode else "prefill")
        device = self.engine.config.device
        lengths = torch.tensor([req.extend_len for req in reqs])
        rows = torch.tensor([req.table_idx for req in reqs]).repeat_interleave(lengths).to(device)
        positions = [torch.arange(req.cached_len, req.device_len) for req in reqs]
        batch.positions = torch.cat(positions).to(device)
        batch.out_loc = self._table.page_table[rows, batch.positions]
        yields_token = torch.tensor([not req.is_chunk for req in reqs])
        batch.logits_rows = (lengths.cumsum(0) - 1)[yields_token].to(device)
        size, seed = self.engine.model_config.vocab_size, self.engine.config.seed
        pool = self._table.token_pool
        sampled = [req for req in reqs if not req.is_chunk]
        batch.sampling_args = make_args(sampled, pool, size, seed, self._eos_ids)
        return batch, rows

    def _forward(self, batch: Batch, rows: torch.Tensor) -> ForwardOutput:
        """Launch a pass; its tokens become the next inputs without leaving the device."""
        batch.input_ids = self._table.token_pool[rows, batch.positions]
        output = self.engine.forward_batch(batch)
        last = batch.logits_rows
        self._table.token_pool[rows[last], batch.positions[last] + 1] = output.next_tokens
        for req in batch.reqs:
            req.complete_one()
        return output

    def _accept(self, request: Request, token: torch.Tensor, logprob: TokenLogprob | None) -> None:
        """Take over a sampled token, int32 `[1]` on the CPU, and see what it makes of its request.

        A row without scores ends alone: its neighbours were computed beside it, not with it.
        """
        if token < 0:
            self._end(request, "error", RuntimeError("NaN or infinite scores: check the weights"))
            return
        request.req.append_host(token)
        request.token_ids.append(int(token))
        if logprob is not None:
            request.logprobs.append(logprob)
        reason = finish_reason(request.req, self._eos_ids)
        if reason is not None:
            self._end(request, reason)
            self._prefill.estimate.ended(request)
        elif request.state is State.PREFILL:
            self._cache.cache_req(request.req)
            self._decode.running[request.uid] = request
            del self._prefill.running[request.uid]
            request.move(State.DECODE)

    def _record(self, event: str, **data: Any) -> None:
        if (trace := self.trace) is not None:
            trace.add(event, **data)
