"""`LLM`: the engine as a Python object."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

from tqdm import tqdm

from minisgl.core import SamplingParams
from minisgl.engine.config import EngineConfig
from minisgl.engine.engine import Engine
from minisgl.llm.output import GenerateOutput, StreamOutput
from minisgl.llm.prompt import Message, Prompt, as_prompts, encode, is_chat, paired
from minisgl.scheduler.request import FinishReason, Request
from minisgl.scheduler.static import StaticScheduler
from minisgl.tokenizer.detokenize import Detokenizer
from minisgl.tokenizer.load import eos_token_ids, load_tokenizer


class LLM:
    """A model that answers prompts. Use it in a `with` block, or `close` it.

    Threads may share one: their requests are computed together.
    """

    def __init__(self, model: str | Path, *, progress: bool = False, **options: Any) -> None:
        """`model` and `options` are the fields of `EngineConfig`.

        Raises:
            ValueError: there is no such model, or the engine does not support it.
        """
        engine = Engine(EngineConfig(model, **options), progress)
        self.tokenizer = load_tokenizer(engine.folder)
        eos_ids = eos_token_ids(engine.folder, self.tokenizer)
        self._scheduler: StaticScheduler | None = StaticScheduler(engine, eos_ids)
        self._uids = count()
        self._lock = Lock()

    @property
    def scheduler(self) -> StaticScheduler:
        """What decides who is computed; a RuntimeError after `close`."""
        if self._scheduler is None:
            raise RuntimeError("this LLM is closed: make a new one")
        return self._scheduler

    @property
    def engine(self) -> Engine:
        """What computes; a RuntimeError after `close`."""
        return self.scheduler.engine

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
            ValueError: a prompt or a parameter is invalid; nothing is computed then.
            RuntimeError: the LLM is closed, or the computation of the batch failed.
        """
        pairs = paired(as_prompts(prompts), sampling_params)
        requests = [self._checked(*pair) for pair in pairs]
        # Only a bar that is shown: tqdm takes a lock of all threads, and Ctrl-C may leave it taken.
        with self._opened(requests):
            for request in tqdm(requests, desc="generate") if progress else requests:
                while request.finish_reason is None:
                    with self._lock:
                        self.scheduler.step()
        return [self._output(request) for request in requests]

    def chat(
        self, messages: Sequence[Message], sampling_params: SamplingParams | None = None
    ) -> GenerateOutput:
        """Answer one conversation: `[{"role": "user", "content": "…"}, …]`.

        Raises:
            ValueError, RuntimeError: as `generate`.
        """
        if not is_chat(messages):
            raise ValueError(f"chat takes a list of messages, got {reprlib.repr(messages)}")
        return self.generate([messages], sampling_params)[0]

    def stream(
        self, prompt: Prompt, sampling_params: SamplingParams | None = None
    ) -> Iterator[StreamOutput]:
        """Answer one prompt piece by piece: an output per token.

        A piece may be empty: a character of several tokens comes with the last of them. Nothing
        is computed before the first piece is asked for.

        Raises:
            ValueError: as `generate`, at the call.
            RuntimeError: as `generate`, while the stream is read.
        """
        [pair] = paired([prompt], sampling_params)
        return self._stream(self._checked(*pair))

    def close(self) -> None:
        """Release the model's memory; any later call is a RuntimeError. May be called twice."""
        self._scheduler = None

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _checked(self, prompt: Prompt, params: SamplingParams) -> Request:
        params.validate()
        ids = encode(prompt, self.tokenizer, self.engine.model_config.vocab_size)
        room = self.engine.max_seq_len - len(ids)
        if room < 1:
            raise ValueError(
                f"a prompt must be shorter than {self.engine.max_seq_len} tokens, this one has "
                f"{len(ids)}: shorten it"
            )
        # A copy, so that the caller's later changes do not reach a running request.
        return Request(next(self._uids), ids, min(params.max_tokens, room), replace(params))

    @contextmanager
    def _opened(self, requests: list[Request]) -> Iterator[None]:
        """Have `requests` computed; however the `with` block is left, they are over then."""
        try:
            with self._lock:
                for request in requests:
                    self.scheduler.add(request)
            yield
        finally:
            for request in requests:
                if self._scheduler is not None:
                    self._scheduler.abort(request.uid)

    def _output(self, request: Request) -> GenerateOutput:
        detokenizer = Detokenizer(self.tokenizer, request.input_ids)
        return GenerateOutput(
            text=detokenizer.push(request.token_ids, finished=True),
            token_ids=request.token_ids,
            finish_reason=_reason(request),
            num_prompt_tokens=len(request.input_ids),
            num_cached_tokens=request.num_cached_tokens,
            logprobs=request.logprobs or None,
        )

    def _stream(self, request: Request) -> Iterator[StreamOutput]:
        detokenizer = Detokenizer(self.tokenizer, request.input_ids)
        num_sent = 0
        reason: FinishReason | None = None
        with self._opened([request]):
            while reason is None:
                with self._lock:
                    if num_sent == len(request.token_ids):
                        self.scheduler.step()
                    news = request.token_ids[num_sent:]
                    reason = None if request.finish_reason is None else _reason(request)
                num_sent += len(news)
                for index, token_id in enumerate(news, 1):
                    last = reason if index == len(news) else None
                    text = detokenizer.push([token_id], finished=last is not None)
                    yield StreamOutput(text, [token_id], last)


def _reason(request: Request) -> FinishReason:
    """Why a request has ended; a RuntimeError where it ended without its answer."""
    assert request.finish_reason is not None
    if request.finish_reason == "error":
        raise RuntimeError(f"request {request.uid} was lost when its batch failed: ask again")
    return request.finish_reason
