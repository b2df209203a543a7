"""Chapter 7: tokens per second against the number of requests that share a decode step.

Step 06 answers them one after another, step 07 in one batch. The rate of step 06 cannot depend on
how many wait, so it takes two of them at most and the machine's time goes where it matters.
"""

import time
from functools import partial
from typing import Any

from _bench import StepProcess, alternate, record

SIZES = (1, 2, 4, 8, 16, 32)
PROMPT_LEN, NEW_TOKENS = 32, 9


def load() -> Any:
    from _step import model_dir

    from minisgl.llm import LLM

    return LLM(model_dir(), max_seq_len=64, num_pages=4 * max(SIZES))


def tokens_per_second(llm: Any, size: int) -> float:
    """Generated tokens per second, the prefills and the tokens that they yield left out."""
    from minisgl.core import SamplingParams

    prompts = [[100 * row + n for n in range(PROMPT_LEN)] for row in range(1, size + 1)]
    forward_batch, prefill = llm.engine.forward_batch, 0.0

    def timed(batch: Any) -> Any:
        nonlocal prefill
        begin = time.perf_counter()
        output = forward_batch(batch)
        prefill += (time.perf_counter() - begin) * batch.is_prefill
        return output

    llm.engine.forward_batch = timed
    start = time.perf_counter()
    llm.generate(prompts, SamplingParams(max_tokens=NEW_TOKENS, ignore_eos=True))
    seconds = time.perf_counter() - start - prefill
    llm.engine.forward_batch = forward_batch
    return size * (NEW_TOKENS - 1) / seconds


def main() -> None:
    rows = []
    with StepProcess(6, load) as before, StepProcess(7, load) as after:
        for size in SIZES:
            pair = alternate(
                partial(before, tokens_per_second, min(size, 2)),
                partial(after, tokens_per_second, size),
            )
            rows.append(
                {
                    "batch_size": size,
                    "one_at_a_time": pair.a,
                    "one_batch": pair.b,
                    "speedup": 1 / pair.ratio,
                    "spread": pair.spread,
                }
            )
    record(
        "ch07_attention",
        "tokens per second of decoding, SmolLM2 in fp32, prompts of 32 tokens: step 06, which "
        "computes the requests one at a time, and step 07, which computes them in one batch; "
        "medians of 5 pairs",
        rows,
    )


if __name__ == "__main__":
    main()
