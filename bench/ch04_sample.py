"""Chapter 4: what choosing the tokens of a batch costs, beside sorting the vocabulary for it.

The logits are those of the real model after the first words of a text, and random ones whose
nucleus holds thousands of tokens.
"""

import time
from functools import partial
from typing import Any

from _bench import StepProcess, alternate, record

TEXT = (
    "Once upon a time there was a little girl who lived in a village near the forest. Every "
    "morning she went to the river, and asked the old fisherman what he had seen during the night."
)
KINDS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "top-p": {"temperature": 0.8, "top_p": 0.9},
    "top-k": {"temperature": 0.8, "top_k": 50},
    "all": {
        "temperature": 0.8,
        "top_p": 0.9,
        "top_k": 50,
        "min_p": 0.02,
        "repetition_penalty": 1.1,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.1,
    },
}
CALLS = 10


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


def batch_of(state: Any, rows: int, kind: str) -> Any:
    from minisgl.core import Batch, Req, SamplingParams

    no_handle: Any = None  # there is no prefix cache
    return Batch(
        [
            Req(state["ids"], 0, 0, 1, uid, SamplingParams(**KINDS[kind]), no_handle)
            for uid in range(rows)
        ],
        "decode",
    )


def sampler(state: Any, logits: str, rows: int, kind: str) -> float:
    from minisgl.engine.sample import sample

    scores, batch = state[logits][:rows], batch_of(state, rows, kind)
    start = time.perf_counter()
    for _ in range(CALLS):
        sample(scores, batch, 0)
    return 1000 * (time.perf_counter() - start) / CALLS


def sorting(state: Any, logits: str, rows: int) -> float:
    """Every batch by the longest way, without penalties: softmax, sort, mask, multinomial."""
    import torch

    scores = state[logits][:rows]
    start = time.perf_counter()
    probs, ids = (scores / 0.8).softmax(-1).sort(descending=True)
    probs[probs.cumsum(-1) - probs >= 0.9] = 0
    ids.gather(-1, torch.multinomial(probs, 1))
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    rows = []
    with StepProcess(4, load) as step:
        for logits in ("real", "flat"):
            for size in (1, 16, 32):
                for kind in KINDS:
                    pair = alternate(
                        partial(step, sampler, logits, size, kind),
                        partial(step, sorting, logits, size),
                    )
                    rows.append(
                        {
                            "logits": logits,
                            "rows": size,
                            "kind": kind,
                            "sampler_ms": pair.a,
                            "sorting_ms": pair.b,
                            "ratio": pair.ratio,
                            "spread": pair.spread,
                        }
                    )
    record(
        "ch04_sample",
        "milliseconds to choose a token per row, vocabulary 49152, fp32: the sampler, and a full "
        "sort of every row with top-p 0.9 beside it; medians of 5 pairs",
        rows,
    )


if __name__ == "__main__":
    main()
