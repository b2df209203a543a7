"""Chapter 9: what choosing the tokens of a batch costs, and what a sort row by row costs.

The logits are those of the real model after the first words of a text, and random ones whose
nucleus holds thousands of tokens.
"""

import time
from functools import partial
from importlib import import_module
from typing import Any

from _bench import Row, StepProcess, alternate, record

TEXT = (
    "Once upon a time there was a little girl who lived in a village near the forest. Every "
    "morning she went to the river, and asked the old fisherman what he had seen during the night."
)
PENALTIES = {"repetition_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": 0.1}
KINDS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "temperature 0.8": {"temperature": 0.8},
    "top-k 50": {"temperature": 0.8, "top_k": 50},
    "top-p 0.9": {"temperature": 0.8, "top_p": 0.9},
    "top-p 0.95 at temperature 1": {"temperature": 1.0, "top_p": 0.95},
    "top-p 0.9, flat": {"temperature": 0.8, "top_p": 0.9},
    "top-p 0.9, penalties": {"temperature": 0.8, "top_p": 0.9},
}
SIZES = (1, 8, 16, 32)
ROWS = 96  # so many are chosen for one figure, in batches


def load() -> Any:
    from _step import model_dir

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_grad_enabled(False)
    ids = AutoTokenizer.from_pretrained(model_dir())(TEXT, return_tensors="pt")["input_ids"]
    model = AutoModelForCausalLM.from_pretrained(model_dir(), dtype=torch.float32)
    real = model(ids).logits[0, :32].clone()
    flat = torch.randn(real.shape, generator=torch.Generator().manual_seed(0))
    return {"real": real, "flat": flat, "ids": ids[0].int()}


def logits_of(state: Any, kind: str, size: int) -> Any:
    return state["flat" if kind.endswith("flat") else "real"][:size]


def reqs_of(state: Any, params: dict[str, Any], size: int) -> Any:
    from minisgl.core import Req, SamplingParams

    no_handle: Any = None  # there is no prefix cache
    return [
        Req(state["ids"], uid, 0, 1, uid, SamplingParams(**params), no_handle)
        for uid in range(size)
    ]


def by_sort(state: Any, kind: str, size: int) -> float:
    """Milliseconds per row of step 4's sampler, which knows no penalties."""
    step_4: Any = import_module("minisgl.engine.sample")
    logits, reqs = logits_of(state, kind, size), reqs_of(state, KINDS[kind], size)
    generators = [step_4.make_generator(req, 0, "cpu") for req in reqs]
    calls = ROWS // size
    start = time.perf_counter()
    for _ in range(calls):
        args = step_4.SamplingArgs([req.sampling_params for req in reqs], generators)
        step_4.sample(logits, args)
    return 1000 * (time.perf_counter() - start) / (calls * size)


def by_thresholds(state: Any, kind: str, size: int) -> float:
    """Milliseconds per row of step 9's sampler, what it is told of the batch included."""
    from minisgl.engine.sample import make_args, sample

    penalties = PENALTIES if kind.endswith("penalties") else {}
    logits, reqs = logits_of(state, kind, size), reqs_of(state, KINDS[kind] | penalties, size)
    token_pool = state["ids"].repeat(size, 1)
    calls = ROWS // size
    start = time.perf_counter()
    for _ in range(calls):
        sample(logits, make_args(reqs, token_pool, logits.shape[-1], 0))
    return 1000 * (time.perf_counter() - start) / (calls * size)


def main() -> None:
    rows: list[Row] = []
    with StepProcess(4, load) as before, StepProcess(9, load) as after:
        for kind in KINDS:
            for size in SIZES:
                pair = alternate(
                    partial(before, by_sort, kind, size), partial(after, by_thresholds, kind, size)
                )
                rows.append(
                    {
                        "kind": kind,
                        "rows": size,
                        "sorting_ms": pair.a,
                        "thresholds_ms": pair.b,
                        "ratio": pair.ratio,
                        "spread": pair.spread,
                    }
                )
    record(
        "ch09_sample",
        "milliseconds per row to choose the tokens of a batch, vocabulary 49152, fp32: by step 4, "
        "which sorts row by row, and by step 9; penalties in step 9 alone; medians of 5 pairs of "
        f"{ROWS} rows each",
        rows,
    )


if __name__ == "__main__":
    main()
