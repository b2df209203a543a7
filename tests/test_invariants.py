"""Nothing leaks, whatever happens: after any workload every page has exactly one owner.

A request may finish, be abandoned, fail in the middle, be interrupted or be refused. Afterwards
nothing is locked, each row is free, and the engine answers as if nothing had been. `LLM` and the
scheduler are the real ones; the engine is a fake that fails at once if it reads a page that is not
the request's. Some tests run on a tiny model as well.
"""

import random
import sys
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
import torch

import minisgl.llm.llm
from fake_engine import FakeEngine, Scheduler, budget, fake_engine, make_request
from interrupts import interrupt_at
from minisgl.core import Batch, SamplingParams
from minisgl.llm import LLM
from minisgl.scheduler.request import Request

TinyModel = Callable[[str], Path]
Stream = Generator[Any, None, None]
PROMPT = [5, 6, 7, 8, 9, 10]
NUM_TOKENS = 48  # of the whole pool


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


def make_llm(folder: Path, page_size: int, **options: Any) -> LLM:
    """One whose longest request takes the whole pool."""
    return LLM(
        folder,
        page_size=page_size,
        num_pages=NUM_TOKENS // page_size,
        max_seq_len=NUM_TOKENS + 1,
        max_running_reqs=4,
        **options,
    )


@pytest.fixture
def llm(
    page_size: int, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., LLM]:
    """A function that makes the object, in the body of the test, on a fake engine."""

    def make(**options: int) -> LLM:
        with monkeypatch.context() as patch:
            patch.setattr(minisgl.llm.llm, "Engine", FakeEngine)
            return make_llm(tiny_model("llama"), page_size, **options)

    return make


def up_to(max_tokens: int) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, ignore_eos=True)


def opened(llm: LLM, prompt: list[int], num_read: int) -> Stream:
    """A stream of which some pieces have been read."""
    stream = cast("Stream", llm.stream(prompt, up_to(12)))
    for _ in range(num_read):
        next(stream)
    return stream


def rest(stream: Stream) -> list[int]:
    return [token for piece in stream for token in piece.token_ids]


def assert_nothing_is_held(llm: LLM) -> None:
    """No request is running: everything is back, and one request can have the whole pool."""
    llm.scheduler.step()
    llm.scheduler.check_invariants()
    [output] = llm.generate([100] * NUM_TOKENS, up_to(1))
    assert len(output.token_ids) == 1
    llm.scheduler.check_invariants()


def answers(llm: LLM) -> list[list[int]]:
    outputs = llm.generate([PROMPT, [*PROMPT, 11, 12], [13]], [up_to(9), up_to(4), up_to(12)])
    return [output.token_ids for output in outputs]


# --- finished, closed, dropped --------------------------------------------------------------------


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


def test_a_stream_that_is_dropped_is_closed(llm: Callable[[], LLM]) -> None:
    with llm() as model:
        stream = opened(model, PROMPT, 3)
        del stream
        assert_nothing_is_held(model)


def test_streams_end_in_any_order(llm: Callable[[], LLM]) -> None:
    with llm() as model:
        expected = answers(model)
        one = opened(model, PROMPT, 2)
        other = opened(model, PROMPT, 5)  # waits for the first one, whose tokens are kept for it
        one.close()
        assert rest(other)[:4] == expected[0][5:]
        assert_nothing_is_held(model)
        assert answers(model) == expected


def test_more_streams_than_rows_wait_for_each_other(llm: Callable[[], LLM]) -> None:
    """They share a prefix, which is locked for those that run and for nobody else."""
    with llm() as model:
        expected = answers(model)
        streams = [opened(model, PROMPT, 1) for _ in range(7)]
        assert answers(model) == expected
        assert all(rest(stream)[:8] == expected[0][1:] for stream in streams)
        assert_nothing_is_held(model)


# --- aborted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("aborted", [[0], [1], [2], [0, 2], [0, 1, 2, 3]])
@pytest.mark.parametrize("num_steps", range(7))
def test_a_request_may_be_aborted_after_any_step(
    page_size: int, num_steps: int, aborted: list[int]
) -> None:
    """The last of the four waits; it has no row yet. The others' answers are what they were."""
    engine = fake_engine(max_running_reqs=3, page_size=page_size, max_seq_len=32)
    scheduler = Scheduler(engine, frozenset())
    requests = [make_request(uid, PROMPT[: 5 - uid], 5) for uid in range(4)]
    for request in requests:
        scheduler.add(request)
    num_tokens: dict[int, int] = {}  # of those who were aborted
    for n in range(14):
        if n == num_steps:
            for uid in aborted:
                num_tokens[uid] = len(requests[uid].token_ids)
                scheduler.abort(uid)
                scheduler.abort(uid)  # once more changes nothing
        scheduler.step()
        scheduler.check_invariants()
    for request in requests:
        answer = engine.answer(request.input_ids, 5)
        assert request.token_ids == answer[: num_tokens.get(request.uid, 5)]
        assert (request.finish_reason == "length") == (len(request.token_ids) == 5)
    assert_the_pool_is_free(scheduler, engine)


def assert_the_pool_is_free(scheduler: Any, engine: FakeEngine) -> None:
    prompt = [100] * min(engine.max_seq_len - 1, engine.num_pages * engine.config.page_size)
    request = make_request(10**6, prompt, 1)
    scheduler.add(request)
    scheduler.step()
    assert request.token_ids == engine.answer(prompt, 1)
    scheduler.check_invariants()


@pytest.mark.parametrize("launch", [1, 2, 4])
def test_a_request_may_be_aborted_in_the_middle_of_a_step(
    page_size: int, launch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that nobody reads is dropped wherever Python collects it."""
    engine = fake_engine(max_running_reqs=3, page_size=page_size, max_seq_len=32)
    scheduler, forward_batch = Scheduler(engine, frozenset()), engine.forward_batch

    def aborting(batch: Batch) -> Any:
        if len(engine.batches) + 1 == launch:
            scheduler.abort(0)
            scheduler.abort(2)
        return forward_batch(batch)

    monkeypatch.setattr(engine, "forward_batch", aborting)
    requests = [make_request(uid, PROMPT, 6) for uid in range(3)]
    for request in requests:
        scheduler.add(request)
    for _ in range(7):
        scheduler.step()
        scheduler.check_invariants()
    counts = [len(request.token_ids) for request in requests]
    assert counts == [launch, 6, launch]
    assert requests[1].token_ids == engine.answer(PROMPT, 6)
    assert_the_pool_is_free(scheduler, engine)


# --- failed ---------------------------------------------------------------------------------------


class Failure(Exception):
    """What no code of the engine raises."""


@contextmanager
def failing(llm: LLM, launch: int, error: BaseException) -> Iterator[None]:
    """Let one forward pass fail, the first being number 1, after it has written its KV."""
    original, number = llm.engine.forward_batch, iter(range(1, 10**6))

    def fail(batch: Batch) -> Any:
        output = original(batch)
        if next(number) == launch:
            raise error
        return output

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llm.engine, "forward_batch", fail)
        yield


@pytest.mark.parametrize("error", [Failure("of the kernel"), KeyboardInterrupt()])
@pytest.mark.parametrize("launch", [1, 2, 5])
def test_a_batch_may_fail_in_any_pass(
    page_size: int, launch: int, error: BaseException, tiny_model: TinyModel
) -> None:
    with make_llm(tiny_model("llama"), page_size) as llm:
        expected = answers(llm)
        told = (type(error), RuntimeError) if isinstance(error, Failure) else KeyboardInterrupt
        with failing(llm, launch, error), pytest.raises(told):
            answers(llm)
        assert_nothing_is_held(llm)
        assert answers(llm) == expected


@pytest.mark.parametrize("launch", [1, 2, 5])
def test_a_stream_may_fail_in_any_pass(launch: int, llm: Callable[[], LLM]) -> None:
    with llm() as model:
        expected = answers(model)
        with failing(model, launch, Failure()), pytest.raises((Failure, RuntimeError)):
            opened(model, PROMPT, 12)
        assert_nothing_is_held(model)
        assert answers(model) == expected


def test_who_was_in_the_batch_that_failed_is_told_so_and_nobody_else(
    llm: Callable[[], LLM],
) -> None:
    with llm() as model:
        expected = answers(model)
        lost = opened(model, PROMPT, 3)  # runs
        with failing(model, 2, Failure()), pytest.raises((Failure, RuntimeError)):
            answers(model)  # drives its passes, too
        unread: list[int] = []  # tokens of the pass that went well
        with pytest.raises(RuntimeError):
            for piece in lost:
                unread += piece.token_ids
        assert len(unread) <= 1 and unread == expected[0][3 : 3 + len(unread)]
        assert_nothing_is_held(model)
        assert answers(model) == expected


# --- interrupted ----------------------------------------------------------------------------------


def test_an_interrupt_at_any_line_of_a_batch_leaves_nothing_behind(
    page_size: int, llm: Callable[[], LLM]
) -> None:
    def short(model: LLM) -> list[list[int]]:
        outputs = model.generate([PROMPT, [*PROMPT, 11]], [up_to(2), up_to(4)])
        return [output.token_ids for output in outputs]

    with llm() as model:
        expected = short(model)
        place: list[str] = ["not yet"]
        number = page_size // 3 % 3 - 2
        while place:
            number += 3  # each line, over the page sizes
            with suppress(KeyboardInterrupt), interrupt_at(number) as place:
                short(model)
            model.scheduler.step()
            model.scheduler.check_invariants()
            assert short(model) == expected, place
        assert number > 500
        assert_nothing_is_held(model)


def test_an_interrupt_at_any_line_of_a_stream_leaves_nothing_behind(
    page_size: int, llm: Callable[[], LLM]
) -> None:
    with llm() as model:
        expected = answers(model)
        place: list[str] = ["not yet"]
        number = page_size % 5 - 4
        while place:
            number += 5
            with suppress(KeyboardInterrupt), interrupt_at(number) as place:
                rest(opened(model, PROMPT, 0))
            model.scheduler.step()
            model.scheduler.check_invariants()
        assert number > 500
        assert_nothing_is_held(model)
        assert answers(model) == expected


def test_a_stream_beside_an_interrupted_batch_goes_on_right_or_says_that_it_is_lost(
    page_size: int, llm: Callable[[], LLM]
) -> None:
    """And an interrupt may hit the clean-up after the one before."""
    chance, lost = random.Random(page_size), 0
    with llm() as model:
        expected = answers(model)
        [whole] = [output.token_ids for output in model.generate(PROMPT, up_to(12))]
        for _ in range(60):
            stream = opened(model, PROMPT, chance.randint(1, 5))
            for most in (1500, 100):
                with suppress(KeyboardInterrupt), interrupt_at(chance.randrange(1, most)):
                    answers(model)
            try:
                streamed = rest(stream)
                assert streamed == whole[len(whole) - len(streamed) :]
            except RuntimeError:
                lost += 1
            assert_nothing_is_held(model)
            assert answers(model) == expected
    assert 0 < lost < 60


# --- refused --------------------------------------------------------------------------------------


def test_what_is_refused_takes_nothing(llm: Callable[[], LLM]) -> None:
    refused: list[tuple[Any, Any]] = [
        ([PROMPT, []], None),
        ([PROMPT, [10**6]], None),
        ([PROMPT, [3] * (NUM_TOKENS + 1)], None),
        ([PROMPT, PROMPT], [up_to(3)]),
        ([PROMPT], SamplingParams(max_tokens=0)),
    ]
    with llm() as model:
        for prompts, params in refused:
            with pytest.raises(ValueError):
                model.generate(prompts, params)
            assert_nothing_is_held(model)


def test_who_finds_no_room_waits_and_takes_nothing(page_size: int) -> None:
    """It shares a prefix with those who run, which must stay locked for them alone."""
    engine = fake_engine(max_running_reqs=8, page_size=page_size, num_pages=NUM_TOKENS // page_size)
    scheduler = Scheduler(engine, frozenset())
    for turn in range(3):
        prompts = [[7] * 12 + [8 + uid] * 8 for uid in range(5)]
        requests = [make_request(10 * turn + n, ids, 9) for n, ids in enumerate(prompts)]
        for request in requests:
            scheduler.add(request)
        while any(request.finish_reason is None for request in requests):
            scheduler.step()
            scheduler.check_invariants()
        assert all(one.token_ids == engine.answer(one.input_ids, 9) for one in requests)
    assert max(map(len, engine.batches)) < 5
    assert_the_pool_is_free(scheduler, engine)


# --- everything at once ---------------------------------------------------------------------------


def some_prompt(chance: random.Random, longest: int = 12) -> list[int]:
    """Of two letters: beginnings meet all the time."""
    return [5 + chance.randrange(2) for _ in range(chance.randint(1, longest))]


@pytest.mark.parametrize("seed", range(100))
def test_random_requests_in_the_scheduler_get_what_they_get_alone(seed: int) -> None:
    """Added and aborted at any step, in passes that may fail, on a pool that holds few of them."""
    chance = random.Random(seed)
    page_size = chance.choice([1, 2, 3, 4, 16])
    options = {"num_pages": chance.randint(-(-24 // page_size), 40), "page_size": page_size}
    options |= budget(chance.choice([3, 8, 64]))
    engine = fake_engine(2, max_seq_len=25, max_running_reqs=chance.randint(1, 6), **options)
    scheduler, forward_batch = Scheduler(engine, frozenset()), engine.forward_batch

    def unreliable(batch: Batch) -> Any:
        output = forward_batch(batch)
        if chance.random() < 0.03:
            raise Failure
        return output

    engine.forward_batch = unreliable
    requests: list[Request] = []
    aborted: set[int] = set()
    for _ in range(120):
        for _ in range(chance.choice([0, 0, 1, 3])):
            requests.append(make_request(len(requests), some_prompt(chance), chance.randint(1, 12)))
            scheduler.add(requests[-1])
        if requests and chance.random() < 0.1:
            aborted.add(chance.randrange(len(requests)))
            scheduler.abort(max(aborted))
        with suppress(Failure):
            scheduler.step()
        scheduler.check_invariants()
    for request in requests:
        answer = engine.answer(request.input_ids, request.output_len)
        assert request.token_ids == answer[: len(request.token_ids)]
        assert (request.finish_reason == "length") == (request.token_ids == answer)
    assert sum(request.finish_reason == "length" for request in requests) > 10


@pytest.mark.parametrize("seed", range(10))
def test_any_mixture_gives_everything_back(seed: int, llm: Callable[..., LLM]) -> None:
    chance = random.Random(seed)
    with llm(**budget([1, 2, 5, 64][seed % 4])) as model:
        engine, expected = cast("FakeEngine", model.engine), answers(model)
        for _ in range(12):
            prompt = some_prompt(chance)
            stream = opened(model, prompt, num_read := chance.randrange(12))
            wanted = [(some_prompt(chance), chance.randint(1, 8)) for _ in range(3)]
            event = chance.choice(["finish", "fail", "refuse"])
            launch = chance.randint(1, 4) if event == "fail" else 0
            prompts = [
                [] if event == "refuse" and n == 2 else ids for n, (ids, _) in enumerate(wanted)
            ]
            with suppress(Failure, ValueError, RuntimeError), failing(model, launch, Failure()):
                outputs = model.generate(prompts, [up_to(n) for _, n in wanted])
                got = [output.token_ids for output in outputs]
                assert got == [engine.answer(*one) for one in wanted]
            if chance.random() < 0.5:
                with suppress(RuntimeError):
                    assert rest(stream) == engine.answer(prompt, 12)[num_read:]
            stream.close()
            assert_nothing_is_held(model)
        assert answers(model) == expected


# --- threads --------------------------------------------------------------------------------------


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("failures", [0.0, 0.02])
def test_threads_that_share_an_engine_get_what_each_gets_alone(
    failures: float, page_size: int, llm: Callable[[], LLM], eager_threads: None
) -> None:
    with llm() as model:
        engine, chance = cast("FakeEngine", model.engine), random.Random(0)
        forward_batch = engine.forward_batch

        def unreliable(batch: Batch) -> Any:
            output = forward_batch(batch)
            if chance.random() < failures:
                raise Failure
            return output

        engine.forward_batch = unreliable  # type: ignore[method-assign]

        def work(seed: int) -> int:
            chance, num_lost = random.Random(seed), 0
            for _ in range(15):
                prompt = some_prompt(chance)
                answer = engine.answer(prompt, 8)
                try:
                    if chance.random() < 0.5:
                        outputs = model.generate([prompt, prompt[:1]], up_to(8))
                        assert outputs[0].token_ids == answer
                        assert outputs[1].token_ids == engine.answer(prompt[:1], 8)
                        continue
                    stream = cast("Stream", model.stream(prompt, up_to(8)))
                    for n, piece in enumerate(stream):
                        assert piece.token_ids == [answer[n]]
                        if chance.random() < 0.05:
                            break
                    stream.close()
                except (Failure, RuntimeError):
                    num_lost += 1
            return num_lost

        with ThreadPoolExecutor(6) as pool:
            lost = sum(pool.map(work, range(6)))
        assert lost == 0 if failures == 0 else lost > 0
        engine.forward_batch = forward_batch  # type: ignore[method-assign]
        assert_nothing_is_held(model)


def test_threads_get_the_model_s_own_answers(tiny_model: TinyModel, eager_threads: None) -> None:
    with make_llm(tiny_model("qwen3"), 4) as llm:
        expected = answers(llm)
        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(answers, llm) for _ in range(8)]
            assert all(future.result() == expected for future in futures)
        assert_nothing_is_held(llm)
