"""An engine without a model, on which the real scheduler runs in microseconds a step.

Its "KV" of a token is the whole text up to there, kept at the token's location. Its next token is
a hash of the text that it reads back through the page table (in chapter 5, from the row's span).
A location that was never written, belongs to somebody else or is given away too early is so an
AssertionError at once, and a wrong token besides: `answer` says what a request gets alone.

`FakeEngine` takes the arguments of `Engine` and fits wherever one does, `LLM` included.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from minisgl.core import Batch, Context, Req, SamplingParams
from minisgl.engine.config import EngineConfig
from minisgl.scheduler.request import Request

# The scheduler of the step that is tested: until chapter 9 it is minisgl/scheduler/static.py, then
# minisgl/scheduler/scheduler.py.
STATIC = find_spec("minisgl.scheduler.static") is not None
if STATIC:
    Scheduler: Any = import_module("minisgl.scheduler.static").StaticScheduler
else:
    Scheduler = import_module("minisgl.scheduler.scheduler").Scheduler

BUDGETED = hasattr(EngineConfig, "max_batch_tokens")  # whether steps have one: from chapter 12 on

VOCAB_SIZE = 384  # as the tiny models have
Text = tuple[int, ...]
LOST = -1  # begins a text of which a pass that failed has spoilt some KV


class _Rows:
    """The places of chapter 5."""

    def __init__(self, max_seq_len: int) -> None:
        self._max_seq_len = max_seq_len

    def span(self, table_idx: int, length: int) -> slice:
        start = table_idx * self._max_seq_len
        return slice(start, start + length)


class FakeEngine:
    """What the scheduler and `LLM` touch of an engine; `letters` tokens are all that it writes."""

    def __init__(self, config: EngineConfig, progress: bool = False, letters: int = 380) -> None:
        self.config = config
        self.folder = config.model
        self.model_config = SimpleNamespace(vocab_size=VOCAB_SIZE)
        self.max_seq_len = length = config.max_seq_len or 64
        self.letters = letters
        self.batches: list[dict[int, tuple[int, int]]] = []  # uid -> (cached_len, device_len)
        page_size = getattr(config, "page_size", None)
        self.ctx = Context(page_size or 1)
        if page_size is None:  # chapter 5
            rows: Any = _Rows(length)
            self.ctx.kv_cache = rows
            num_places = config.max_running_reqs * length
        else:
            self.ctx.page_table = torch.zeros(config.max_running_reqs, length, dtype=torch.int32)
            self.num_pages = config.num_pages or -(-4 * length // page_size)
            num_places = self.num_pages * page_size
        self._kv: list[Text | None] = [None] * num_places  # by location

    def forward_batch(self, batch: Batch) -> Any:
        """The next token of each request, after everything that the scheduler says was checked."""
        bounds = [0]
        for req in batch.reqs:
            bounds.append(bounds[-1] + req.extend_len)
        positions = [p for req in batch.reqs for p in range(req.cached_len, req.device_len)]
        assert batch.positions.tolist() == positions
        # A chunk ends before the last known token, and yields none.
        sampled = [req for req in batch.reqs if req.device_len >= len(req.input_ids)]
        last = [end - 1 for req, end in zip(batch.reqs, bounds[1:], strict=True) if req in sampled]
        assert batch.logits_rows.tolist() == last
        decodes = [req for req in sampled if req.extend_len == 1]
        assert batch.is_decode == (len(decodes) == batch.size)
        assert hasattr(batch, "sampling_args"), "the batch says nothing of sampling"
        written = batch.out_loc.tolist()
        assert len(set(written)) == len(written), "two tokens are written to one location"

        ids = batch.input_ids.tolist()
        for req, start, end in zip(batch.reqs, bounds, bounds[1:], strict=False):
            self._write(req, ids[start:end], written[start:end])
        texts = [self._read(req) for req in batch.reqs]  # after all have written
        yielded = [text for req, text in zip(batch.reqs, texts, strict=True) if req in sampled]
        self.batches.append({req.uid: (req.cached_len, req.device_len) for req in batch.reqs})
        tokens = [self._next_token(text) for text in yielded]
        return SimpleNamespace(next_tokens=torch.tensor(tokens, dtype=torch.int32), logprobs=None)

    def spoil(self, batch: Batch) -> None:
        """What a pass leaves that fails half-way: whoever reads it gets wrong tokens."""
        for location in batch.out_loc.tolist():
            self._kv[location] = (LOST,)

    def answer(self, prompt: Sequence[int], num_tokens: int) -> list[int]:
        """What a request gets that is computed alone, without any cache."""
        text = tuple(prompt)
        for _ in range(num_tokens):
            text += (self._next_token(text),)
        return list(text[len(prompt) :])

    def _write(self, req: Req, ids: list[int], out_loc: list[int]) -> None:
        """As in a model, what a token becomes depends on what is read of the tokens before it."""
        places = self._places(req)
        assert out_loc == places[req.cached_len :], f"{req!r} writes where it does not read"
        text = self._kv[places[req.cached_len - 1]] if req.cached_len else ()
        for location, token in zip(out_loc, ids, strict=True):
            assert text is not None, f"{req!r} reads what was never written"
            text = self._kv[location] = (*text, token)

    def _read(self, req: Req) -> Text:
        own = tuple(req.input_ids[: req.device_len].tolist())
        places = self._places(req)
        for position, location in enumerate(places[: len(own)]):  # the newest may be on its way
            read = self._kv[location]
            if read is not None and read[0] == LOST:  # its token shows it, if anybody takes it
                continue
            assert read == own[: position + 1], f"{req!r} reads at {position} what is not its own"
        text = self._kv[places[-1]]
        assert text is not None
        return text

    def _places(self, req: Req) -> list[int]:
        """Where the tokens of a request lie, in order."""
        if not hasattr(self.ctx, "page_table"):
            kv_cache: Any = self.ctx.kv_cache
            span = kv_cache.span(req.table_idx, req.device_len)
            return list(range(span.start, span.stop))
        places: list[int] = self.ctx.page_table[req.table_idx, : req.device_len].tolist()
        size, pages = self.config.page_size, req.cache_handle.pages
        mirrored = [pages[p // size] * size + p % size for p in range(req.device_len)]
        if getattr(self.config, "overlaps", False):
            # Its prompt may have gone to the tree since the pass was launched, and the row with it:
            # then the same was computed in both places.
            n = req.cached_len
            same = [self._kv[p] for p in places[:n]] == [self._kv[p] for p in mirrored[:n]]
            assert same and places[n:] == mirrored[n:], f"the row of {req!r} is not its own"
        else:
            assert places == mirrored, f"the row of {req!r} does not mirror its pages"
        return places

    def _next_token(self, text: Text) -> int:
        return 3 + zlib.crc32(repr(text).encode()) % self.letters  # 0, 1 and 2 are special


def fake_engine(letters: int = 380, **options: Any) -> Any:
    """A fake engine of these options of `EngineConfig`, of whatever type its user wants."""
    return FakeEngine(EngineConfig("no model", **options), letters=letters)


def budget(num_tokens: int) -> dict[str, int]:
    """Options by which a step computes no more tokens than that, where steps have a budget."""
    return {"max_batch_tokens": num_tokens} if BUDGETED else {}


def make_request(uid: int, prompt: list[int], num_tokens: int, **params: Any) -> Request:
    """A request for `num_tokens` tokens; `params` are those of `SamplingParams`."""
    return Request(uid, prompt, num_tokens, SamplingParams(max_tokens=num_tokens, **params))


@contextmanager
def failing_step(
    error: type[Exception], *requests: Request, match: str | None = None
) -> Iterator[None]:
    """In a `with` block, a step of `requests` whose pass fails.

    Until chapter 9 the step raises; then it ends the requests, and tells each what has failed.
    """
    if STATIC:
        with pytest.raises(error, match=match):
            yield
        return
    yield
    for request in requests:
        cause: Any = request.error  # type: ignore[attr-defined,unused-ignore]
        assert request.finish_reason == "error" and isinstance(cause, error)
        assert re.search(match or "", f"request {request.uid} failed: {cause!r}")
