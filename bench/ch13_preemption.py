"""Chapter 13: room for the longest answer against room for the expected one, and two orders.

Step 12 and step 13 answer the same requests in the same pool. A request may generate many tokens,
and ends after as many as the round says: a model's own end would differ from round to round.
Prompts are new in every round, so nobody profits from the round before; what an answer's length
teaches stays.
"""

import random
import time
from collections.abc import Iterator
from functools import partial
from statistics import mean, median
from typing import Any

from _bench import StepProcess, alternate, record

NUM_REQUESTS, NUM_ROWS, PROMPT_LEN, MAX_TOKENS = 24, 24, 16, 96
SHORT = (4, 32)  # how long an answer is that ends early
ANSWERS = {"short": 1.0, "mixed": 0.5, "long": 0.0}  # which part of them does; it comes first
CASES = [("short", 14), ("short", 28), ("short", 56), ("short", 168), ("mixed", 28), ("long", 28)]
NUM_PREFIXES, PREFIX_LEN, QUESTIONS, QUESTION_LEN, ANSWER_LEN = 4, 256, 8, 16, 4
WAITING, WAITING_LEN, ORDERS = (8, 128, 1024), 512, 20


def load(num_rows: int, num_pages: int, options: dict[str, Any]) -> Any:
    from _step import model_dir

    from minisgl.llm import LLM

    options |= {"max_running_reqs": num_rows, "num_pages": num_pages, "page_size": 16}
    return LLM(model_dir(), **options), random.Random(0)


def some_tokens(chance: random.Random, count: int) -> list[int]:
    return [chance.randrange(100, 40_000) for _ in range(count)]


def answer(llm: Any, prompts: list[list[int]], max_tokens: int, lengths: list[int]) -> Any:
    """Figures of a round of requests, each of which ends after its number of tokens."""
    import minisgl.scheduler.scheduler
    from minisgl.core import SamplingParams
    from minisgl.scheduler.request import Request
    from minisgl.scheduler.trace import Trace

    params = SamplingParams(max_tokens=max_tokens)
    requests = [Request(uid, ids, max_tokens, params) for uid, ids in enumerate(prompts)]

    def reason(req: Any, _: object) -> str | None:
        num_tokens = len(req.input_ids) - req.prompt_len
        return "stop" if num_tokens == lengths[req.uid] else None

    module: Any = minisgl.scheduler.scheduler
    module.finish_reason = reason
    llm.scheduler.trace = trace = Trace()
    start = time.perf_counter()
    for request in requests:
        llm.scheduler.add(request)
    while not all(request.finish_reason for request in requests):
        llm.scheduler.step()
    seconds = time.perf_counter() - start
    first: dict[int, float] = {}
    for event in trace.events:
        for uid in event.get("tokens", ()):
            first.setdefault(uid, 1000 * (event["time"] - start))
    passes = [event["lengths"] for event in trace.events if event["event"] == "launch"]
    computed = sum(end - begin for one in passes for begin, end in one.values())
    needed = sum(len(ids) + count - 1 for ids, count in zip(prompts, lengths, strict=True))
    return {
        "rate": sum(lengths) / seconds,
        "rows": mean(map(len, passes)),
        "ttft_ms": mean(first.values()),
        "worst_ttft_ms": max(first.values()),
        "retractions": sum(event["event"] == "retract" for event in trace.events),
        "computed": computed / needed,
        "cached": sum(one.num_cached_tokens for one in requests) / sum(map(len, prompts)),
    }


def medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: median(one[name] for one in rounds) for name in rounds[0]}


# --- the longest answer and the expected one --------------------------------------------------


def serve(state: Any, answers: str) -> Any:
    llm, chance = state
    lengths, drawn = [], random.Random(1)  # the same in every round
    for number in range(NUM_REQUESTS):
        is_short = number < NUM_REQUESTS * ANSWERS[answers]
        lengths.append(drawn.randint(*SHORT) if is_short else MAX_TOKENS)
    prompts = [some_tokens(chance, PROMPT_LEN) for _ in lengths]
    return answer(llm, prompts, MAX_TOKENS, lengths)


def pool_rows() -> Iterator[dict[str, Any]]:
    for answers, num_pages in CASES:
        with (
            StepProcess(12, load, NUM_ROWS, num_pages, {}) as before,
            StepProcess(13, load, NUM_ROWS, num_pages, {}) as after,
        ):
            rounds: dict[StepProcess, list[dict[str, float]]] = {before: [], after: []}

            def rate(step: StepProcess, answers: str = answers, rounds: Any = rounds) -> float:
                rounds[step].append(step(serve, answers))
                return float(rounds[step][-1]["rate"])

            pair = alternate(partial(rate, before), partial(rate, after))
            longest, expected = medians(rounds[before]), medians(rounds[after])
        yield {
            "answers": answers,
            "pages": num_pages,
            "longest_rows": longest["rows"],
            "expected_rows": expected["rows"],
            "longest_rate": pair.a,
            "expected_rate": pair.b,
            "speedup": 1 / pair.ratio,
            "longest_ttft_ms": longest["ttft_ms"],
            "expected_ttft_ms": expected["ttft_ms"],
            "retractions": expected["retractions"],
            "computed": expected["computed"],
            "spread": pair.spread,
        }


# --- two orders -------------------------------------------------------------------------------


def share(state: Any) -> Any:
    """Questions on a few texts, in turns."""
    llm, chance = state
    texts = [some_tokens(chance, PREFIX_LEN) for _ in range(NUM_PREFIXES)]
    prompts = [text + some_tokens(chance, QUESTION_LEN) for text in texts * QUESTIONS]
    return answer(llm, prompts, ANSWER_LEN, [ANSWER_LEN] * len(prompts))


def policy_rows() -> Iterator[dict[str, Any]]:
    processes = {
        policy: StepProcess(13, load, 2, 2 * PREFIX_LEN // 16 + 12, {"schedule_policy": policy})
        for policy in ("fcfs", "lpm")
    }
    with processes["fcfs"] as first_come, processes["lpm"] as longest_prefix:
        rounds: dict[StepProcess, list[dict[str, float]]] = {first_come: [], longest_prefix: []}

        def rate(step: StepProcess) -> float:
            rounds[step].append(step(share))
            return float(rounds[step][-1]["rate"])

        alternate(partial(rate, first_come), partial(rate, longest_prefix))
        for policy, process in processes.items():
            figures = medians(rounds[process])
            names = ("cached", "rate", "ttft_ms", "worst_ttft_ms")
            yield {"policy": policy} | {name: figures[name] for name in names}


# --- what an order costs ----------------------------------------------------------------------


def order(state: Any, policy: str, num_waiting: int) -> float:
    """Microseconds of putting those who wait in order, once."""
    from minisgl.core import SamplingParams
    from minisgl.scheduler.policy import POLICIES
    from minisgl.scheduler.request import Request

    llm, chance = state
    text = some_tokens(chance, WAITING_LEN // 2)
    llm.generate([text], SamplingParams(max_tokens=1))
    waiting = [
        Request(uid, text + some_tokens(chance, WAITING_LEN // 2), 8, SamplingParams())
        for uid in range(num_waiting)
    ]
    begin = time.perf_counter()
    for _ in range(ORDERS):
        POLICIES[policy]().order(waiting, llm.scheduler._cache)
    return 1e6 * (time.perf_counter() - begin) / ORDERS


def order_rows(step: StepProcess) -> Iterator[dict[str, Any]]:
    for num_waiting in WAITING:
        first_come, longest_prefix = (
            median(step(order, policy, num_waiting) for _ in range(5)) for policy in ("fcfs", "lpm")
        )
        yield {"waiting": num_waiting, "fcfs_us": first_come, "lpm_us": longest_prefix}


def main() -> None:
    record(
        "ch13_preemption",
        f"{NUM_REQUESTS} requests of {PROMPT_LEN} tokens that come at once and may have answers of "
        f"{MAX_TOKENS} (short: they have {SHORT[0]} to {SHORT[1]}; mixed: the second half has "
        f"{MAX_TOKENS}; long: all have), pages of 16 tokens for the longest answer (step 12) and "
        "for the expected one (step 13): rows per pass, tokens per second, milliseconds to the "
        "first token (mean), retractions, and tokens computed by tokens needed; SmolLM2 in fp32, "
        "medians of 5 pairs",
        pool_rows(),
    )
    record(
        "ch13_policies",
        f"{NUM_PREFIXES * QUESTIONS} requests that come at once, on {NUM_PREFIXES} texts of "
        f"{PREFIX_LEN} tokens in turns, in a pool that holds two of them, in the order of arrival "
        "and by longest prefix: the part of the prompts that was cached, tokens per second, "
        "milliseconds to the first token (mean and worst); SmolLM2 in fp32, medians of 6 rounds",
        policy_rows(),
    )
    with StepProcess(13, load, 2, 64, {}) as step:
        record(
            "ch13_order",
            f"microseconds of putting waiting requests of {WAITING_LEN} tokens in order, half of "
            "each cached; medians of 5",
            order_rows(step),
        )


if __name__ == "__main__":
    main()
