"""Chapter 14: what lies between two passes, and how fast tokens come, with overlap and without.

On a CPU: both ways take turns, each in a process of its own. A pass is `forward_batch`; what lies
between the end of one and the beginning of the next is the time in which nothing is computed.
"""

import time
from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Any

from _bench import StepProcess, alternate, record

BATCH_SIZES = (1, 8, 32)
PROMPT_LEN, NUM_TOKENS = 16, 10


def load(overlap: bool) -> Any:
    from _step import model_dir

    from minisgl.llm import LLM

    return LLM(model_dir(), max_seq_len=64, overlap=overlap)


def decode(llm: Any, batch_size: int) -> tuple[float, float]:
    """Tokens per second of that many requests, and the median gap in milliseconds."""
    from minisgl.core import SamplingParams

    engine, times = llm.engine, []
    original = engine.forward_batch

    def watched(batch: Any) -> Any:
        begin = time.perf_counter()
        output = original(batch)
        times.append((begin, time.perf_counter()))
        return output

    engine.forward_batch = watched
    prompts = [[100 * (1 + row)] * PROMPT_LEN for row in range(batch_size)]
    llm.generate(prompts, SamplingParams(max_tokens=NUM_TOKENS, ignore_eos=True))
    engine.forward_batch = original
    passes = times[1:]  # the first one computes the prompts
    seconds = passes[-1][1] - times[0][1]
    gaps = [1000 * (after[0] - before[1]) for before, after in pairwise(times)]
    return batch_size * len(passes) / seconds, median(gaps)


def rows(in_turn: StepProcess, overlapped: StepProcess) -> Iterator[dict[str, Any]]:
    for batch_size in BATCH_SIZES:
        gaps: dict[StepProcess, list[float]] = {in_turn: [], overlapped: []}

        def rate(
            step: StepProcess, size: int = batch_size, found: dict[Any, list[float]] = gaps
        ) -> float:
            tokens, gap = step(decode, size)
            found[step].append(gap)
            return float(tokens)

        pair = alternate(lambda: rate(in_turn), lambda: rate(overlapped))
        yield {
            "batch_size": batch_size,
            "in_turn_gap_ms": median(gaps[in_turn]),
            "overlap_gap_ms": median(gaps[overlapped]),
            "in_turn_rate": pair.a,
            "overlap_rate": pair.b,
            "speedup": 1 / pair.ratio,
            "spread": pair.spread,
        }


def main() -> None:
    with StepProcess(14, load, False) as in_turn, StepProcess(14, load, True) as overlapped:
        record(
            "ch14_overlap",
            f"{NUM_TOKENS} tokens for each of batch_size requests on a CPU, without overlap and "
            "with: milliseconds between two passes, tokens per second of decoding, and their "
            "ratio; SmolLM2 in fp32, pairs of runs",
            rows(in_turn, overlapped),
        )


if __name__ == "__main__":
    main()
