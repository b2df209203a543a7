"""`LLM`: the engine as a Python object."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
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
        """
        pending = self._check_all(as_prompts(prompts), sampling_params)
        return [
            self._finish(req)
            for req in tqdm(pending, desc="generate", unit="request", disable=not progress)
        ]

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
        [req] = self._check_all([checked(prompt)], sampling_params)
        return self._stream(req)

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

    def _admit(self, pending: PendingReq) -> Req:
        """Give a request its row and pages."""
        num_tokens = len(pending.input_ids) + pending.output_len
        if not self._table.num_free_rows or not self._cache.can_allocate(num_tokens):
            raise RuntimeError(
                f"a request of {num_tokens} tokens does not fit beside those that run: "
                "read or close a stream that is still open"
            )
        req = Req(
            input_ids=torch.tensor(pending.input_ids, dtype=torch.int32),
            table_idx=self._table.allocate(),
            cached_len=0,
            output_len=pending.output_len,
            uid=pending.uid,
            sampling_params=pending.sampling_params,
            cache_handle=None,
        )
        self._cache.allocate(req)
        self._table.token_pool[req.table_idx, : req.device_len] = req.input_ids
        return req

    def _release(self, req: Req) -> None:
        if sys.is_finalizing():
            return  # a stream was left open: torch works no more, and all memory goes with it
        self._cache.free(req)
        self._table.free(req.table_idx)

    def _run(
        self, pending: PendingReq
    ) -> Iterator[tuple[int, TokenLogprob | None, FinishReason | None]]:
        """Each token with its log probability, and with the last one why it is the last."""
        req = self._admit(pending)
        reason = None
        try:
            while reason is None:
                output = self.engine.forward_batch(self._make_batch(req))
                self._table.token_pool[req.table_idx, req.device_len] = output.next_tokens[0]
                req.complete_one()
                req.append_host(output.next_tokens)
                reason = finish_reason(req, self._eos_ids)
                yield int(output.next_tokens), output.logprobs[0], reason
        finally:
            self._release(req)

    def _make_batch(self, req: Req) -> Batch:
        batch = Batch([req], "decode" if req.extend_len == 1 else "prefill")
        row, new = req.table_idx, slice(req.cached_len, req.device_len)
        batch.positions = torch.arange(new.start, new.stop, device=self.engine.config.device)
        batch.input_ids = self._table.token_pool[row, new]
        batch.out_loc = self._table.page_table[row, new]
        return batch

    def _finish(self, req: PendingReq) -> GenerateOutput:
        token_ids, logprobs, reasons = (list(part) for part in zip(*self._run(req), strict=True))
        return GenerateOutput(
            text=self._decode(token_ids),
            token_ids=token_ids,
            finish_reason=reasons[-1],
            num_prompt_tokens=len(req.input_ids),
            num_cached_tokens=0,
            logprobs=None if req.sampling_params.logprobs is None else logprobs,
        )

    def _stream(self, req: PendingReq) -> Iterator[StreamOutput]:
        token_ids: list[int] = []
        sent = ""
        for token, _, reason in self._run(req):
            token_ids.append(token)
            text = self._decode(token_ids)
            # U+FFFD at the end is most likely the first bytes of a character still to come.
            if text.endswith("\ufffd") and reason is None:
                text = sent
            yield StreamOutput(text[len(sent) :], [token], reason)
            sent = text

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
