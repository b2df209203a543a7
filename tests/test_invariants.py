"""Nothing leaks, whatever happens: after any workload every page has exactly one owner.

A request may finish, be abandoned, fail in the middle or be refused. Afterwards nothing is
locked, each row is free, and the engine answers as if nothing had been.
"""

import random
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from minisgl.core import Batch, SamplingParams
from minisgl.engine.engine import ForwardOutput
from minisgl.llm import LLM

TinyModel = Callable[[str], Path]
PROMPT = [5, 6, 7, 8, 9, 10]
NUM_TOKENS, MAX_SEQ_LEN = 64, 24  # two of the longest requests fit


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=[1, 3, 4, 16])
def page_size(request: pytest.FixtureRequest) -> int:
    return request.param


def make_llm(folder: Path, page_size: int) -> LLM:
    return LLM(
        folder,
        page_size=page_size,
        num_pages=NUM_TOKENS // page_size,
        max_seq_len=MAX_SEQ_LEN,
        max_running_reqs=4,
    )


def up_to(max_tokens: int) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, ignore_eos=True)


def opened(llm: LLM, prompt: list[int], num_read: int) -> Generator[Any, None, None]:
    """A stream of which some pieces have been read."""
    stream = cast("Generator[Any, None, None]", llm.stream(prompt, up_to(12)))
    for _ in range(num_read):
        next(stream)
    return stream


def assert_nothing_is_held(llm: LLM) -> None:
    """No request is running: all is back, and the whole pool can be had at once."""
    llm._cache.check_invariants([])
    assert llm._cache.tree.num_locked == 0
    assert llm._table.num_free_rows == llm.engine.config.max_running_reqs
    for row in range(2):
        prompt = [100 + row] * (MAX_SEQ_LEN - 1)
        assert len(llm.generate(prompt, up_to(1))[0].token_ids) == 1
    llm._cache.check_invariants([])


def answers(llm: LLM) -> list[list[int]]:
    outputs = llm.generate([PROMPT, [*PROMPT, 11, 12], [13]], [up_to(9), up_to(4), up_to(12)])
    return [output.token_ids for output in outputs]


class Failure(Exception):
    """What no code of the engine raises."""


def fail_at(llm: LLM, launch: int, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let one forward pass fail, the first being number 1, after it has written its KV."""
    original, count = llm.engine.forward_batch, iter(range(1, 1000))

    def failing(batch: Batch) -> ForwardOutput:
        output = original(batch)
        if next(count) == launch:
            raise error
        return output

    monkeypatch.setattr(llm.engine, "forward_batch", failing)


def test_what_finishes_gives_everything_back(page_size: int, tiny_model: TinyModel) -> None:
    with make_llm(tiny_model("llama"), page_size) as llm:
        expected = answers(llm)
        assert_nothing_is_held(llm)
        assert answers(llm) == expected
        assert_nothing_is_held(llm)


@pytest.mark.parametrize("num_read", [0, 1, 2, 11, 12])
def test_a_stream_may_be_closed_anywhere(
    page_size: int, num_read: int, tiny_model: TinyModel
) -> None:
    """Before its first token, right after its prefill, half-way, at the last token."""
    with make_llm(tiny_model("llama"), page_size) as llm:
        expected = answers(llm)
        opened(llm, PROMPT, num_read).close()
        assert_nothing_is_held(llm)
        assert answers(llm) == expected


def test_a_stream_that_is_dropped_is_closed(page_size: int, tiny_model: TinyModel) -> None:
    with make_llm(tiny_model("llama"), page_size) as llm:
        stream = opened(llm, PROMPT, 3)
        del stream
        assert_nothing_is_held(llm)


def test_streams_end_in_any_order(page_size: int, tiny_model: TinyModel) -> None:
    with make_llm(tiny_model("llama"), page_size) as llm:
        expected = answers(llm)
        one = opened(llm, PROMPT, 2)
        other = opened(llm, PROMPT, 5)
        one.close()
        rest = [token for piece in other for token in piece.token_ids]
        assert rest[:4] == expected[0][5:]
        assert_nothing_is_held(llm)
        assert answers(llm) == expected


@pytest.mark.parametrize("error", [Failure("of the kernel"), KeyboardInterrupt()])
@pytest.mark.parametrize("launch", [1, 2, 5])
def test_a_batch_may_fail_in_any_pass(
    page_size: int,
    launch: int,
    error: BaseException,
    tiny_model: TinyModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with make_llm(tiny_model("llama"), page_size) as llm:
        expected = answers(llm)
        with monkeypatch.context() as patch:
            fail_at(llm, launch, patch, error)
            with pytest.raises(type(error)):
                answers(llm)
        assert_nothing_is_held(llm)
        assert answers(llm) == expected


@pytest.mark.parametrize("launch", [1, 2, 5])
def test_a_stream_may_fail_in_any_pass(
    page_size: int, launch: int, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_llm(tiny_model("llama"), page_size) as llm:
        expected = answers(llm)
        with monkeypatch.context() as patch:
            fail_at(llm, launch, patch, Failure())
            with pytest.raises(Failure):
                opened(llm, PROMPT, 12)
        assert_nothing_is_held(llm)
        assert answers(llm) == expected


def test_what_is_refused_takes_nothing(page_size: int, tiny_model: TinyModel) -> None:
    refused: list[tuple[Any, Any]] = [
        ([PROMPT, []], None),
        ([PROMPT, [10**6]], None),
        ([PROMPT, [3] * MAX_SEQ_LEN], None),
        ([PROMPT, PROMPT], [up_to(3)]),
        ([PROMPT], SamplingParams(max_tokens=0)),
    ]
    with make_llm(tiny_model("llama"), page_size) as llm:
        for prompts, params in refused:
            with pytest.raises(ValueError):
                llm.generate(prompts, params)
            assert_nothing_is_held(llm)


def test_a_request_refused_beside_streams_takes_nothing(
    page_size: int, tiny_model: TinyModel
) -> None:
    """It shares their prefix, which must stay locked for the streams alone."""
    with make_llm(tiny_model("llama"), page_size) as llm:
        expected = answers(llm)
        streams: list[Generator[Any, None, None]] = []
        with pytest.raises(RuntimeError, match="stream"):
            while len(streams) <= llm.engine.config.max_running_reqs:
                streams.append(opened(llm, PROMPT, 1))
        with pytest.raises(RuntimeError, match="stream"):
            llm.generate(PROMPT, up_to(12))
        for stream in streams:
            rest = [token for piece in stream for token in piece.token_ids]
            assert rest[:8] == expected[0][1:]
        assert_nothing_is_held(llm)
        assert answers(llm) == expected


@pytest.mark.parametrize("seed", range(3))
def test_any_mixture_gives_everything_back(
    page_size: int, seed: int, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)

    def some_prompt() -> list[int]:
        return [5 + chance.randrange(2) for _ in range(chance.randint(1, 12))]

    with make_llm(tiny_model("llama"), page_size) as llm:
        expected = answers(llm)
        for _ in range(12):
            stream = opened(llm, some_prompt(), chance.randrange(12))
            prompts = [some_prompt() for _ in range(chance.randint(1, 3))]
            event = chance.choice(["finish", "fail", "refuse"])
            with monkeypatch.context() as patch:
                if event == "fail":
                    fail_at(llm, chance.randint(1, 4), patch, Failure())
                if event == "refuse":
                    prompts.append([])
                with suppress(Failure, ValueError, RuntimeError):
                    llm.generate(prompts, up_to(chance.randint(1, 8)))
            if chance.random() < 0.5:
                assert len([*stream]) <= 12
            stream.close()
            assert_nothing_is_held(llm)
        assert answers(llm) == expected
