"""Chapter 10: a static batch against continuous batching, and what the scheduler itself costs.

Step 09 and step 10 answer the same requests, more than have a row, all of which come at once.
Prompts are new in every round, so nobody profits from the round before.
"""

import random
import time
from collections.abc import Iterator
from functools import partial
from statistics import mean, median
from typing import Any

from _bench import StepProcess, alternate, record

NUM_REQUESTS, NUM_ROWS, PROMPT_LEN = 24, 8, 32
OUTPUT_LENS = {"alike": (24, 24), "different": (4, 64)}
PREFIX_LENS, QUESTION_LEN, SHARING = (16, 32, 64, 128, 256), 16, 2
RUNNING, STEPS = (1, 4, 16, 64), 20


def load(num_rows: int) -> Any:
    from _step import model_dir

    from minisgl.llm import LLM

    llm = LLM(model_dir(), max_seq_len=320, max_running_reqs=num_rows, num_pages=num_rows * 20)
    return llm, random.Random(0)


def some_tokens(chance: random.Random, count: int) -> list[int]:
    return [chance.randrange(100, 40_000) for _ in range(count)]


# --- static and continuous --------------------------------------------------------------------


def serve(state: Any, lengths: str) -> dict[str, float]:
    """Answer a round; tokens per second, mean time to the first token, rows per decode pass."""
    from minisgl.core import SamplingParams

    llm, chance = state
    forward_batch, rows = llm.engine.forward_batch, []
    first: dict[int, float] = {}

    def timed(batch: Any) -> Any:
        output = forward_batch(batch)
        for req in batch.reqs:
            first.setdefault(req.uid, time.perf_counter())
        rows.extend([batch.size] * batch.is_decode)
        return output

    prompts = [some_tokens(chance, PROMPT_LEN) for _ in range(NUM_REQUESTS)]
    output_lens = random.Random(1)  # the same in every round
    params = [
        SamplingParams(max_tokens=output_lens.randint(*OUTPUT_LENS[lengths]), ignore_eos=True)
        for _ in prompts
    ]
    llm.engine.forward_batch = timed
    start = time.perf_counter()
    llm.generate(prompts, params)
    seconds = time.perf_counter() - start
    llm.engine.forward_batch = forward_batch
    ttft = mean(1000 * (moment - start) for moment in first.values())
    rate = sum(one.max_tokens for one in params) / seconds
    return {"rate": rate, "ttft_ms": ttft, "rows": mean(rows)}


def scheduler_rows(before: StepProcess, after: StepProcess) -> Iterator[dict[str, Any]]:
    for lengths, (low, high) in OUTPUT_LENS.items():
        rounds: dict[StepProcess, list[dict[str, float]]] = {before: [], after: []}

        def rate(step: StepProcess, lengths: str = lengths, rounds: Any = rounds) -> float:
            rounds[step].append(step(serve, lengths))
            return float(rounds[step][-1]["rate"])

        pair = alternate(partial(rate, before), partial(rate, after))
        static, continuous = (
            {name: median(one[name] for one in rounds[step]) for name in ("ttft_ms", "rows")}
            for step in (before, after)
        )
        yield {
            "lengths": lengths,
            "shortest": low,
            "longest": high,
            "static_rows": static["rows"],
            "continuous_rows": continuous["rows"],
            "static_rate": pair.a,
            "continuous_rate": pair.b,
            "speedup": 1 / pair.ratio,
            "static_ttft_ms": static["ttft_ms"],
            "continuous_ttft_ms": continuous["ttft_ms"],
            "spread": pair.spread,
        }


# --- to wait for a prefix that is being computed ----------------------------------------------


def share(state: Any, prefix_len: int, min_shared: int) -> float:
    """Milliseconds to the first tokens of requests that begin alike and come together."""
    from minisgl.core import SamplingParams
    from minisgl.scheduler import prefill

    llm, chance = state
    prefix = some_tokens(chance, prefix_len)
    prompts = [prefix + some_tokens(chance, QUESTION_LEN) for _ in range(SHARING)]
    limit, prefill.MIN_SHARED_TOKENS = prefill.MIN_SHARED_TOKENS, min_shared
    start = time.perf_counter()
    llm.generate(prompts, SamplingParams(max_tokens=1))
    seconds = time.perf_counter() - start
    prefill.MIN_SHARED_TOKENS = limit
    return 1000 * seconds


def sharing_rows(step: StepProcess) -> Iterator[dict[str, Any]]:
    for prefix_len in PREFIX_LENS:
        at_once, waiting = (partial(step, share, prefix_len, limit) for limit in (10**9, 1))
        pair = alternate(at_once, waiting, pairs=9)
        yield {
            "shared_tokens": prefix_len,
            "at_once_ms": pair.a,
            "waiting_ms": pair.b,
            "ratio": pair.ratio,
            "spread": pair.spread,
        }


# --- what a step costs beside its pass --------------------------------------------------------


def bookkeeping(state: Any, num_running: int) -> dict[str, float]:
    """Microseconds of a decode step, and how many of them are not the forward pass."""
    from minisgl.core import SamplingParams
    from minisgl.scheduler.request import Request

    llm, chance = state
    scheduler, forward_batch, inside = llm.scheduler, llm.engine.forward_batch, [0.0]

    def timed(batch: Any) -> Any:
        begin = time.perf_counter()
        output = forward_batch(batch)
        inside[0] = time.perf_counter() - begin
        return output

    params = SamplingParams(max_tokens=STEPS + 2, ignore_eos=True)
    llm.engine.forward_batch, steps = timed, []
    for uid in range(num_running):
        prompt = some_tokens(chance, PROMPT_LEN)
        scheduler.add(Request(uid, prompt, STEPS + 2, params))
    scheduler.step()
    for _ in range(STEPS):
        begin = time.perf_counter()
        scheduler.step()
        seconds = time.perf_counter() - begin
        steps.append((1e6 * seconds, 1e6 * (seconds - inside[0])))
    scheduler.step()
    llm.engine.forward_batch = forward_batch
    whole, outside = (median(column) for column in zip(*steps, strict=True))
    return {"whole": whole, "outside": outside}


def bookkeeping_rows(step: StepProcess) -> Iterator[dict[str, Any]]:
    for num_running in RUNNING:
        rounds = [step(bookkeeping, num_running) for _ in range(5)]
        whole, outside = (median(one[name] for one in rounds) for name in ("whole", "outside"))
        yield {
            "running": num_running,
            "step_us": whole,
            "bookkeeping_us": outside,
            "share": outside / whole,
        }


def main() -> None:
    with StepProcess(9, load, NUM_ROWS) as before, StepProcess(10, load, NUM_ROWS) as after:
        record(
            "ch10_scheduler",
            f"{NUM_REQUESTS} requests of {PROMPT_LEN} tokens that come at once to {NUM_ROWS} rows, "
            "in static batches (step 09) and with continuous batching (step 10): rows per decode "
            "pass, tokens per second, milliseconds to the first token (mean), SmolLM2 in fp32; "
            "medians of 5 pairs",
            scheduler_rows(before, after),
        )
        record(
            "ch10_sharing",
            f"milliseconds to the first tokens of {SHARING} requests that come together, begin "
            f"alike and end in {QUESTION_LEN} tokens of their own: computed at once, and the "
            "second one after the first; SmolLM2 in fp32, medians of 9 pairs",
            sharing_rows(after),
        )
    with StepProcess(10, load, max(RUNNING)) as step:
        record(
            "ch10_bookkeeping",
            "microseconds of a decode step and of what is not its forward pass, by the number of "
            "running requests; SmolLM2 in fp32, medians of 5 runs",
            bookkeeping_rows(step),
        )


if __name__ == "__main__":
    main()
