"""Chapter 12: what a budget of tokens per step costs and gains, by its size.

All budgets take turns in each round, on one model. Prompts are new in every round, so nothing is
found in the cache.
"""

import random
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import mean, median
from typing import Any

from _bench import StepProcess, record

BUDGETS = (64, 128, 256, 512, 1024, 2048, None)  # None: as many tokens as there are
ROUNDS = 3
MANY, LONG = (32, 256), (1, 2048)  # how many prompts, of how many tokens each
NUM_RUNNING, CONTEXT, WINDOW = 8, 64, 40
FIRST_UID = 10**6  # far from those that LLM gives
NUM_REQUESTS, NUM_ROWS, PROMPT_LENS, OUTPUT_LENS = 16, 8, (5, 10), (8, 64)


def load(num_rows: int) -> Any:
    from _step import model_dir

    from minisgl.llm import LLM

    llm = LLM(model_dir(), max_seq_len=2200, max_running_reqs=num_rows, num_pages=800)
    return llm, random.Random(0)


def use(llm: Any, budget: int | None) -> None:
    from dataclasses import replace

    config = replace(llm.engine.config, max_batch_tokens=10**6 if budget is None else budget)
    llm.engine.config = config


def some_tokens(chance: random.Random, count: int) -> list[int]:
    return [chance.randrange(100, 40_000) for _ in range(count)]


def by_budget(step: StepProcess, function: Callable[..., object], *args: object) -> Iterator[Any]:
    """For each budget, its figures of all rounds; each round begins with another budget."""
    found: dict[int | None, list[Any]] = {budget: [] for budget in BUDGETS}
    for number in range(ROUNDS):
        for budget in (*BUDGETS[number:], *BUDGETS[:number]):
            found[budget].append(step(function, budget, *args))
    yield from found.items()


# --- how fast prompts are computed ------------------------------------------------------------


def prefill(state: Any, budget: int | None, count: int, length: int) -> float:
    """Tokens per second of `count` prompts that come together."""
    from minisgl.core import SamplingParams

    llm, chance = state
    use(llm, budget)
    prompts = [some_tokens(chance, length) for _ in range(count)]
    start = time.perf_counter()
    llm.generate(prompts, SamplingParams(max_tokens=1))
    return count * length / (time.perf_counter() - start)


def prefill_rows(step: StepProcess) -> Iterator[dict[str, Any]]:
    step(prefill, None, *LONG)  # a warm-up
    many, long = ([*by_budget(step, prefill, *prompts)] for prompts in (MANY, LONG))
    for (budget, many_rates), (_, long_rates) in zip(many, long, strict=True):
        yield {"budget": budget, "many": median(many_rates), "one": median(long_rates)}


# --- how long those who run wait for a token --------------------------------------------------


def gaps(state: Any, budget: int | None) -> dict[str, float]:
    """Milliseconds between two tokens of those who run, from the moment a long prompt comes."""
    from minisgl.core import SamplingParams
    from minisgl.scheduler.request import Request

    llm, chance = state
    scheduler = llm.scheduler
    use(llm, None)
    params = SamplingParams(ignore_eos=True)
    running = []
    for number in range(NUM_RUNNING):
        request = Request(FIRST_UID + number, some_tokens(chance, CONTEXT), 1000, params)
        scheduler.add(request)
        running.append(request)
    for _ in range(5):
        scheduler.step()
    use(llm, budget)
    long = Request(FIRST_UID + NUM_RUNNING, some_tokens(chance, LONG[1]), 100, params)
    scheduler.add(long)
    times: list[float] = []
    ttft = 0.0
    while len(times) < WINDOW or not long.token_ids:
        waits = not long.token_ids
        start = time.perf_counter()
        scheduler.step()
        times.append(1000 * (time.perf_counter() - start))
        ttft += times[-1] * waits
    for request in [*running, long]:
        scheduler.abort(request.uid)
    scheduler.step()
    return {"median_ms": median(times), "worst_ms": max(times), "ttft_ms": ttft}


def gap_rows(step: StepProcess) -> Iterator[dict[str, Any]]:
    for budget, rounds in by_budget(step, gaps):
        figures = {name: median(one[name] for one in rounds) for name in rounds[0]}
        yield {"budget": budget, **figures}


# --- both together ----------------------------------------------------------------------------


def mixed(state: Any, budget: int | None) -> dict[str, float]:
    """Answers of different lengths to prompts of different lengths, all of which come at once."""
    from minisgl.core import SamplingParams
    from minisgl.scheduler.request import Request
    from minisgl.scheduler.trace import Trace

    llm, chance = state
    use(llm, budget)
    scheduler, lengths = llm.scheduler, random.Random(1)  # the same lengths in every round
    scheduler.trace = trace = Trace()
    requests = []
    for uid in range(NUM_REQUESTS):
        prompt = some_tokens(chance, round(2 ** lengths.uniform(*PROMPT_LENS)))
        count = lengths.randint(*OUTPUT_LENS)
        params = SamplingParams(max_tokens=count, ignore_eos=True)
        requests.append(Request(FIRST_UID + uid, prompt, count, params))
        scheduler.add(requests[-1])
    start = time.perf_counter()
    while not all(request.finish_reason for request in requests):
        scheduler.step()
    seconds = time.perf_counter() - start
    scheduler.trace = None
    moments: dict[int, list[float]] = {}
    for event in trace.events:
        for uid in event.get("tokens", ()):
            moments.setdefault(uid, []).append(event["time"])
    worst = [max(b - a for a, b in pairwise(one)) for one in moments.values()]
    return {
        "rate": sum(map(len, moments.values())) / seconds,
        "ttft_ms": mean(1000 * (one[0] - start) for one in moments.values()),
        "worst_ms": 1000 * max(worst),
    }


def mixed_rows(step: StepProcess) -> Iterator[dict[str, Any]]:
    for budget, rounds in by_budget(step, mixed):
        figures = {name: median(one[name] for one in rounds) for name in rounds[0]}
        yield {"budget": budget, **figures}


def main() -> None:
    with StepProcess(12, load, MANY[0]) as step:
        record(
            "ch12_prefill",
            f"tokens of prompts computed per second, {MANY[0]} prompts of {MANY[1]} tokens and "
            f"{LONG[0]} of {LONG[1]}, by the budget of a step (None: no budget); SmolLM2 in fp32, "
            f"medians of {ROUNDS} rounds",
            prefill_rows(step),
        )
        record(
            "ch12_gaps",
            f"milliseconds between two tokens of {NUM_RUNNING} running requests while a prompt of "
            f"{LONG[1]} tokens comes (over {WINDOW} tokens or more), and until that one's first "
            f"token, by the budget of a step; SmolLM2 in fp32, medians of {ROUNDS} rounds",
            gap_rows(step),
        )
    with StepProcess(12, load, NUM_ROWS) as step:
        record(
            "ch12_mixed",
            f"{NUM_REQUESTS} requests on {NUM_ROWS} rows, prompts of {2 ** PROMPT_LENS[0]} to "
            f"{2 ** PROMPT_LENS[1]} tokens and answers of {OUTPUT_LENS[0]} to {OUTPUT_LENS[1]}: "
            "tokens per second, milliseconds to the first token (mean) and between two tokens "
            "(the longest of all), by the budget of a step; SmolLM2 in fp32, medians of "
            f"{ROUNDS} rounds",
            mixed_rows(step),
        )


if __name__ == "__main__":
    main()
