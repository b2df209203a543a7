"""Chapter 11: what a layout costs by the number of rows, and what a decode step gains by it.

All linear layers of a decode step in each layout; the whole step, beside the plain layout and a
bare forward pass of transformers; and the two limits of the machine, reading memory and
multiplying, which are the roofline.
"""

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from statistics import median
from typing import Any

from _bench import StepProcess, alternate, record

DTYPES = ("float32", "bfloat16")
ROWS, ROUNDS = (1, 2, 4, 8, 16, 32, 64, 256), 7
SIZES, CONTEXT, PAIRS = (1, 8, 32), 256, 7
READ_BYTES, GEMM_SIZE = 2**28, 2048


# --- all linear layers ------------------------------------------------------------------------


def load_layers(dtype: str) -> Any:
    """The linear layers of the model in each layout that computes what is right here."""
    from _step import model_dir

    import torch

    from minisgl.layers.layout import LAYOUTS, measure
    from minisgl.llm import LLM
    from minisgl.models.layouts import _groups

    torch.set_grad_enabled(False)
    llm = LLM(model_dir(), dtype=getattr(torch, dtype), weight_layout="plain")
    groups = _groups(llm.engine.model).values()
    matrices = [layer.matrix for layers in groups for layer in layers]
    right = set.intersection(*(set(measure([layers[0].matrix])) for layers in groups))
    return matrices, {
        name: [make(one) for one in matrices] for name, make in LAYOUTS.items() if name in right
    }


def all_layers(state: Any, num_rows: int) -> dict[str, float]:
    """Milliseconds by layout, medians of rounds in which all take turns."""
    import torch

    matrices, products = state
    widths = {matrix.shape[1] for matrix in matrices}
    inputs = {width: torch.randn(num_rows, width).to(matrices[0].dtype) for width in widths}
    times: dict[str, list[float]] = {name: [] for name in products}
    for number in range(1 + ROUNDS):  # the first is a warm-up
        for name in [*products][:: -1 if number % 2 else 1]:
            start = time.perf_counter()
            for product, matrix in zip(products[name], matrices, strict=True):
                product(inputs[matrix.shape[1]], None)
            times[name].append(1000 * (time.perf_counter() - start))
    return {name: median(figures[1:]) for name, figures in times.items()}


def layer_rows(limit: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for dtype in DTYPES:
        with StepProcess(11, load_layers, dtype) as step:
            for num_rows in ROWS:
                found = step(all_layers, num_rows)
                reading, multiplying = (limit[dtype][one] for one in ("read_ms", "multiply_ms"))
                yield {
                    "dtype": dtype,
                    "rows": num_rows,
                    "least_ms": max(reading, num_rows * multiplying),
                    "plain_ms": found["plain"],
                    "transposed_ms": found["transposed"],
                    "onednn_ms": found.get("oneDNN"),
                    "mkl_ms": found.get("MKL"),
                    "ratio": found["plain"] / min(found.values()),
                }


# --- a decode step ----------------------------------------------------------------------------


def load_engine(dtype: str, layout: str) -> Any:
    from _step import model_dir

    import torch

    from minisgl.llm import LLM

    length = CONTEXT + PAIRS + 2
    llm = LLM(
        model_dir(),
        dtype=getattr(torch, dtype),
        weight_layout=layout,
        max_seq_len=length,
        max_running_reqs=max(SIZES),
        num_pages=max(SIZES) * -(-length // 16),
    )
    return llm, random.Random(0), count()


def begin(state: Any, size: int) -> None:
    """Let requests come, as far as their first token; those of before have ended."""
    from minisgl.core import SamplingParams
    from minisgl.scheduler.request import Request

    llm, chance, uids = state
    for _ in range(size):
        prompt = [chance.randrange(100, 40_000) for _ in range(CONTEXT - 1)]
        params = SamplingParams(ignore_eos=True)
        llm.scheduler.add(Request(next(uids), prompt, PAIRS + 2, params))
    llm.scheduler.step()


def decode(state: Any) -> float:
    llm, *_ = state
    start = time.perf_counter()
    llm.scheduler.step()
    return 1000 * (time.perf_counter() - start)


def load_peer(dtype: str) -> Any:
    from _step import model_dir

    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.set_grad_enabled(False)
    model = AutoModelForCausalLM.from_pretrained(model_dir(), dtype=getattr(torch, dtype))
    return {"model": model}


def begin_peer(state: Any, size: int) -> None:
    import torch
    from transformers import DynamicCache

    state["cache"] = DynamicCache(config=state["model"].config)
    state["ids"] = torch.randint(100, 40_000, (size, CONTEXT - 1))
    decode_peer(state)


def decode_peer(state: Any) -> float:
    start = time.perf_counter()
    output = state["model"](state["ids"], cache=state["cache"], logits_to_keep=1)
    state["ids"] = output.logits[:, -1:].argmax(-1)
    return 1000 * (time.perf_counter() - start)


def decode_rows() -> Iterator[dict[str, Any]]:
    for dtype in DTYPES:
        with (
            StepProcess(11, load_engine, dtype, "plain") as plain,
            StepProcess(11, load_engine, dtype, "measured") as fast,
            StepProcess(None, load_peer, dtype) as peer,
        ):
            for size in SIZES:
                for step in (plain, fast):
                    step(begin, size)
                gain = alternate(partial(plain, decode), partial(fast, decode), PAIRS)
                fast(begin, size)
                peer(begin_peer, size)
                lead = alternate(partial(peer, decode_peer), partial(fast, decode), PAIRS)
                yield {
                    "dtype": dtype,
                    "rows": size,
                    "transformers_ms": lead.a,
                    "plain_ms": gain.a,
                    "measured_ms": gain.b,
                    "over_plain": gain.ratio,
                    "over_transformers": lead.ratio,
                    "tokens_per_second": 1000 * size / gain.b,
                    "spread": max(gain.spread, lead.spread),
                }


# --- the roofline -----------------------------------------------------------------------------


def load_limits() -> Any:
    import torch

    torch.set_grad_enabled(False)
    return torch.ones(1024, READ_BYTES // 4096)


def limits(memory: Any, dtype: str) -> dict[str, float]:
    """The most bytes that are read and operations that are done in a second, of a few tries."""
    import torch

    a = torch.randn(GEMM_SIZE, GEMM_SIZE).to(getattr(torch, dtype))
    row = torch.ones(memory.shape[1])

    def least(run: Callable[[], Any]) -> float:
        seconds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    reading = min(least(memory.sum), least(lambda: memory @ row))
    return {"read": READ_BYTES / reading, "multiply": 2 * GEMM_SIZE**3 / least(lambda: a @ a)}


def num_weights(state: Any) -> int:
    return sum(matrix.numel() for matrix in state[0])


def limit_rows() -> Iterator[dict[str, Any]]:
    with StepProcess(None, load_limits) as step, StepProcess(11, load_layers, "float32") as model:
        for dtype in DTYPES:
            found, size = step(limits, dtype), 4 if dtype == "float32" else 2
            weights = model(num_weights)
            yield {
                "dtype": dtype,
                "weights": weights,
                "read_gb_s": found["read"] / 1e9,
                "gflop_s": found["multiply"] / 1e9,
                "read_ms": 1000 * weights * size / found["read"],
                "multiply_ms": 1000 * 2 * weights / found["multiply"],
                "ridge_rows": found["multiply"] / found["read"] * size / 2,
            }


def main() -> None:
    limit = {row["dtype"]: row for row in limit_rows()}
    record(
        "ch11_roofline",
        "the most that is read from memory (GB/s) and multiplied (GFLOP/s, a product of two square "
        f"matrices of {GEMM_SIZE}), best of {ROUNDS}; what it takes at least to read the weights "
        "of all linear layers of SmolLM2, and to multiply them by one row, in milliseconds; the "
        "number of rows at which both take the same",
        limit.values(),
    )
    record(
        "ch11_layers",
        "milliseconds of all linear layers of a decode step by number of rows, SmolLM2: the least "
        "that the machine's two limits allow; in the plain layout, transposed, packed by oneDNN "
        f"and by MKL; ratio: plain over the fastest; medians of {ROUNDS} rounds in which all take "
        "turns",
        layer_rows(limit),
    )
    record(
        "ch11_decode",
        f"milliseconds of a decode step of SmolLM2 with {CONTEXT} tokens before it, by number of "
        "rows: a bare forward pass of transformers with its cache, and the engine in the plain "
        f"and in the measured layout; ratios of pairs, medians of {PAIRS} pairs",
        decode_rows(),
    )


if __name__ == "__main__":
    main()
