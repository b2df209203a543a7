"""Chapter 4: what the next token costs after n others, when the runner computes all n again.

Beside transformers without its KV cache, which does the same work: the growth is the method's,
and not the runner's.
"""

import time
from functools import partial
from typing import Any

from _bench import StepProcess, alternate, record

LENGTHS = (16, 64, 256, 1024)


def load_runner() -> Any:
    from _step import model_dir

    from minisgl import LLM

    return LLM(model_dir())


def runner(llm: Any, length: int) -> float:
    from minisgl import SamplingParams

    start = time.perf_counter()
    llm.generate([[0] * length], SamplingParams(max_tokens=1))
    return 1000 * (time.perf_counter() - start)


def load_peer() -> Any:
    from _step import model_dir

    import torch
    from transformers import AutoModelForCausalLM

    torch.set_grad_enabled(False)
    return AutoModelForCausalLM.from_pretrained(model_dir(), dtype=torch.float32)


def recompute(model: Any, length: int) -> float:
    import torch

    ids = torch.zeros(1, length, dtype=torch.long)
    start = time.perf_counter()
    model(ids, use_cache=False, logits_to_keep=1).logits.argmax(-1)
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    rows = []
    with StepProcess(4, load_runner) as ours, StepProcess(None, load_peer) as peer:
        for n in LENGTHS:
            pair = alternate(partial(ours, runner, n), partial(peer, recompute, n))
            rows.append(
                {
                    "length": n,
                    "runner_ms": pair.a,
                    "transformers_recompute_ms": pair.b,
                    "ratio": pair.ratio,
                    "spread": pair.spread,
                }
            )
    record(
        "ch04_length",
        "milliseconds for one more token after `length` tokens, fp32, batch of 1: LLM.generate, "
        "and transformers without its KV cache; medians of 5 pairs",
        rows,
    )


if __name__ == "__main__":
    main()
