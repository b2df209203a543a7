"""`LLM`: the engine as a Python object."""

from __future__ import annotations

import reprlib
import sys
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.config import EngineConfig
from minisgl.engine.engine import Engine
from minisgl.engine.sample import TokenLogprob
from minisgl.kvcache.manager import CacheManager
from minisgl.llm.output import FinishReason, GenerateOutput, StreamOutput
from minisgl.llm.prompt import Message, PendingReq, Prompt, as_prompts, checked, encode
from minisgl.scheduler.table import TableManager


@dataclass(eq=False)
class _Running:
    """A request and what it has got so far."""

    req: Req
    num_cached_tokens: int
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: FinishReason | None = None


class LLM:
    """A model that answers prompts. Use it in a `with` block, or `close` it."""

    def __init__(self, model: str | Path, *, progress: bool = False, **options: Any) -> None:
        """`model` and `options` are the fields of `EngineConfig`.

        Raises:
            ValueError: there is no such model, or it cannot be computed right.
        """
        self._engine: Engine | None = Engine(EngineConfig(model, **options), progress)
        self.tokenizer = _load_tokenizer(self.engine.folder)
        self._eos_ids = frozenset(self.engine.model_config.eos_token_ids)
        self._num_reqs = 0
        page_table = self.engine.ctx.page_table
        self._table = TableManager(page_table)
        self._cache = CacheManager(self.engine.num_pages, self.engine.config.page_size, page_table)

    @property
    def engine(self) -> Engine:
        """What computes; a ValueError after `close`."""
        if self._engine is None:
            raise ValueError("an LLM answers until it is closed, this one is: make a new one")
        return self._engine

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        progress: bool = False,
    ) -> list[GenerateOutput]:
        """Answer all prompts, in their order.

        A prompt is a string, a list of token ids, or a list of chat messages; one alone needs no
        list around it. `sampling_params` is one for all or one each, and is not changed.

        Raises:
            ValueError: a prompt or a parameter that cannot be followed; nothing is computed then.
            RuntimeError: streams that are still open leave no room.
        """
        waiting = deque(self._check_all(as_prompts(prompts), sampling_params))
        outputs = []
        with tqdm(total=len(waiting), desc="generate", disable=not progress) as bar:
            while waiting:
                outputs += self._generate_batch(self._admit_some(waiting))
                bar.update(len(outputs) - bar.n)
        return outputs

    def chat(
        self, messages: Sequence[Message], sampling_params: SamplingParams | None = None
    ) -> GenerateOutput:
        """Answer one conversation: `[{"role": "user", "content": "…"}, …]`.

        Raises:
            ValueError: as `generate`.
        """
        return self.generate([checked(messages, "list of messages")], sampling_params)[0]

    def stream(
        self, prompt: Prompt, sampling_params: SamplingParams | None = None
    ) -> Iterator[StreamOutput]:
        """Answer one prompt piece by piece: an output per token.

        A piece may be empty: a character of several tokens comes with the last of them.

        Raises:
            ValueError: as `generate`, at the call.
        """
        [pending] = self._check_all([checked(prompt)], sampling_params)
        return self._stream(pending)

    def close(self) -> None:
        """Give the memory of the model back; the object answers no more. May be called twice."""
        self._engine = None

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_all(
        self,
        prompts: list[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None,
    ) -> list[PendingReq]:
        if sampling_params is None:
            sampling_params = SamplingParams()
        if isinstance(sampling_params, SamplingParams):
            sampling_params = [sampling_params] * len(prompts)
        if not isinstance(sampling_params, list | tuple) or not all(
            isinstance(params, SamplingParams) for params in sampling_params
        ):
            raise ValueError(
                f"sampling_params must be SamplingParams or a list of them, "
                f"got {reprlib.repr(sampling_params)}"
            )
        if len(sampling_params) != len(prompts):
            raise ValueError(
                f"sampling_params must be one for all or one per prompt, got "
                f"{len(sampling_params)} for {len(prompts)} prompts"
            )
        pairs = zip(prompts, sampling_params, strict=True)
        pending = [self._check(uid, *pair) for uid, pair in enumerate(pairs, self._num_reqs)]
        self._num_reqs += len(pending)
        return pending

    def _check(self, uid: int, prompt: Prompt, params: SamplingParams) -> PendingReq:
        params.validate()
        ids = encode(prompt, self.tokenizer, self.engine.model_config.vocab_size)
        room = self.engine.max_seq_len - len(ids)
        if room < 1:
            raise ValueError(
                f"a prompt must be shorter than max_seq_len ({self.engine.max_seq_len} tokens), "
                f"this one has {len(ids)}: shorten it"
            )
        # A copy: the caller may go on to change his.
        return PendingReq(uid, ids, min(params.max_tokens, room), replace(params))

    def _admit(self, pending: PendingReq) -> _Running | None:
        """Give a request its row and pages; None where it does not fit beside those that run."""
        handle = self._cache.match_req(pending.input_ids)
        # Locked first: what the request counts on must not be evicted to make room for it.
        self._cache.tree.lock(handle)
        num_tokens = len(pending.input_ids) + pending.output_len
        if not self._table.num_free_rows or not self._cache.can_allocate(num_tokens, handle):
            self._cache.tree.unlock(handle)
            return None
        req = Req(
            input_ids=torch.tensor(pending.input_ids, dtype=torch.int32),
            table_idx=self._table.allocate(),
            cached_len=handle.cached_len,
            output_len=pending.output_len,
            uid=pending.uid,
            sampling_params=pending.sampling_params,
            cache_handle=handle,
        )
        self._cache.allocate(req)
        self._table.token_pool[req.table_idx, : req.device_len] = req.input_ids
        return _Running(req, handle.cached_len)

    def _admit_some(self, waiting: deque[PendingReq]) -> list[_Running]:
        """As many of the first requests as fit; at least one."""
        batch: list[_Running] = []
        try:
            while waiting and (running := self._admit(waiting[0])):
                batch.append(running)
                waiting.popleft()
        except BaseException:  # also Ctrl-C: nobody else knows of these requests yet
            self._release(batch)
            raise
        if not batch:
            raise RuntimeError(
                "a request does not fit beside those that run: read or close a stream that is "
                "still open"
            )
        return batch

    def _release(self, batch: list[_Running]) -> None:
        if sys.is_finalizing():
            return  # a stream was left open: torch works no more, and all memory goes with it
        for running in batch:
            self._cache.free(running.req)
            self._table.free(running.req.table_idx)

    def _generate_batch(self, batch: list[_Running]) -> list[GenerateOutput]:
        """Run a static batch: nobody joins, and all memory comes back when the last one is done."""
        try:
            running = batch
            while running:
                self._step(running)
                running = [entry for entry in running if entry.finish_reason is None]
        finally:
            self._release(batch)
        return [self._output(entry) for entry in batch]

    def _step(self, running: list[_Running]) -> None:
        """One forward pass: a token for each request."""
        batch = self._make_batch([entry.req for entry in running])
        output = self.engine.forward_batch(batch)
        for entry, token, logprob in zip(running, output.next_tokens, output.logprobs, strict=True):
            req = entry.req
            self._table.token_pool[req.table_idx, req.device_len] = token
            req.complete_one()
            req.append_host(token[None])
            entry.token_ids.append(int(token))
            if logprob is not None:
                entry.logprobs.append(logprob)
            entry.finish_reason = finish_reason(req, self._eos_ids)
            if batch.is_prefill:
                self._cache.cache_req(req)

    def _make_batch(self, reqs: list[Req]) -> Batch:
        """The tokens of all requests that have no KV yet, end to end."""
        is_decode = all(req.extend_len == 1 for req in reqs)
        batch = Batch(reqs, "decode" if is_decode else "prefill")
        device = self.engine.config.device
        rows = torch.tensor([req.table_idx for req in reqs for _ in range(req.extend_len)])
        positions = [torch.arange(req.cached_len, req.device_len) for req in reqs]
        rows, batch.positions = rows.to(device), torch.cat(positions).to(device)
        batch.input_ids = self._table.token_pool[rows, batch.positions]
        batch.out_loc = self._table.page_table[rows, batch.positions]
        return batch

    def _output(self, finished: _Running) -> GenerateOutput:
        assert finished.finish_reason is not None
        return GenerateOutput(
            text=self._decode(finished.token_ids),
            token_ids=finished.token_ids,
            finish_reason=finished.finish_reason,
            num_prompt_tokens=finished.req.prompt_len,
            num_cached_tokens=finished.num_cached_tokens,
            logprobs=finished.logprobs or None,
        )

    def _stream(self, pending: PendingReq) -> Iterator[StreamOutput]:
        [running] = batch = self._admit_some(deque([pending]))
        sent = ""
        try:
            while running.finish_reason is None:
                self._step(batch)
                text = self._decode(running.token_ids)
                # U+FFFD at the end is most likely the first bytes of a character still to come.
                if text.endswith("\ufffd") and running.finish_reason is None:
                    text = sent
                yield StreamOutput(text[len(sent) :], running.token_ids[-1:], running.finish_reason)
                sent = text
        finally:
            self._release(batch)

    def _decode(self, token_ids: list[int]) -> str:
        # Cleaning up spaces would change text that a stream has already sent.
        return self.tokenizer.decode(
            token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )


def _load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    try:
        return AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # its errors are of many kinds
        raise ValueError(f"{folder} must hold a tokenizer (tokenizer.json): {error}") from error


def finish_reason(req: Req, eos_ids: Collection[int]) -> FinishReason | None:
    """Why `req` ends with its newest token, or None while it goes on."""
    if int(req.input_ids[-1]) in eos_ids and not req.sampling_params.ignore_eos:
        return "stop"
    return "length" if len(req.input_ids) == req.max_device_len else None
