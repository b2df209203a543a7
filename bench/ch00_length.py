"""Chapter 0: what one more token costs after n others, when all n are computed again.

The skeleton is compared with transformers in two ways: recomputing as the skeleton does, which
says whether the skeleton is slow for another reason than that, and with its KV cache, which says
what recomputing costs.
"""

import time
from functools import partial
from typing import Any

from _bench import StepProcess, alternate, record

LENGTHS = (16, 64, 256, 1024)


def load_skeleton() -> Any:
    from _step import model_dir

    import ch00_tiny_engine as engine

    return engine, engine.load_model(model_dir())


def skeleton(state: Any, length: int) -> float:
    engine, model = state
    start = time.perf_counter()
    engine.forward(model, [0] * length)
    return 1000 * (time.perf_counter() - start)


def load_peer() -> Any:
    from _step import model_dir

    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.set_grad_enabled(False)
    return AutoModelForCausalLM.from_pretrained(model_dir(), dtype=torch.float32)


def recompute(model: Any, length: int) -> float:
    import torch

    ids = torch.zeros(1, length, dtype=torch.long)
    start = time.perf_counter()
    model(ids, use_cache=False, logits_to_keep=1)
    return 1000 * (time.perf_counter() - start)


def cached(model: Any, length: int) -> float:
    import torch
    from transformers import DynamicCache

    ids, cache = torch.zeros(1, length, dtype=torch.long), DynamicCache(config=model.config)
    model(ids[:, 1:], cache=cache, logits_to_keep=1)
    start = time.perf_counter()
    model(ids[:, :1], cache=cache)
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    rows = []
    with StepProcess(0, load_skeleton) as ours, StepProcess(None, load_peer) as peer:
        for n in LENGTHS:
            fair = alternate(partial(ours, skeleton, n), partial(peer, recompute, n))
            past = alternate(partial(ours, skeleton, n), partial(peer, cached, n))
            rows.append(
                {
                    "length": n,
                    "skeleton_ms": fair.a,
                    "transformers_recompute_ms": fair.b,
                    "ratio": fair.ratio,
                    "transformers_kv_cache_ms": past.b,
                    "recompute_over_kv_cache": past.ratio,
                    "spread": max(fair.spread, past.spread),
                }
            )
    record(
        "ch00_length",
        "milliseconds for one more token after `length` tokens, fp32, batch of 1: the skeleton, "
        "transformers without its KV cache, transformers with it; medians of 5 pairs",
        rows,
    )


if __name__ == "__main__":
    main()
