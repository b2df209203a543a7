"""Chapter 8: where the time of a decode step goes, at batch 8 and a context of 256 tokens.

Once each request's KV is one run of the pool, once all share a prefix, so that a request's pages
are in two places and its KV is gathered before it is read.
"""

import random
import time
from collections import defaultdict
from typing import Any

from _bench import StepProcess, record

BATCH_SIZE, CONTEXT, SHARED = 8, 256, 224
SKIPPED, STEPS = 2, 8
PYTHON = "Python and calling operators"
GROUPS = {
    "linear layers": ("aten::addmm", "aten::mm", "aten::linear"),
    "attention": ("aten::_scaled_dot_product", "aten::scaled_dot_product", "aten::_flash"),
    "gathering KV": ("aten::index_select",),
    "storing KV and other indexing": ("aten::index", "aten::_index", "aten::embedding"),
    "copies and concatenations": ("aten::copy_", "aten::cat", "aten::contiguous", "aten::clone"),
    "element by element (norm, RoPE, SwiGLU)": (
        *("aten::mul", "aten::add", "aten::sub", "aten::neg", "aten::silu", "aten::pow"),
        *("aten::mean", "aten::rsqrt", "aten::rms_norm", "aten::_fused_rms_norm"),
    ),
    "sampling": ("aten::argmax",),
}


def load() -> Any:
    from _step import model_dir

    from minisgl.llm import LLM

    # Room for all prompts of all profiles: where nothing is evicted, a request's pages are a run.
    num_pages = 3 * BATCH_SIZE * (CONTEXT // 16 + 1)
    return LLM(model_dir(), max_seq_len=CONTEXT + 16, num_pages=num_pages), random.Random(0)


def profile(state: Any, shared_len: int) -> dict[str, list[float]]:
    """Group of operators: milliseconds and calls per step."""
    import torch

    from minisgl.core import SamplingParams

    llm, chance = state
    common = [chance.randrange(100, 40_000) for _ in range(shared_len)]
    rest = range(CONTEXT - shared_len)
    prompts = [[*common, *(chance.randrange(100, 40_000) for _ in rest)] for _ in range(BATCH_SIZE)]
    if common:
        llm.generate(common, SamplingParams(max_tokens=1))
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    forward_batch, count, start, end = llm.engine.forward_batch, 0, 0.0, 0.0

    def watched(batch: Any) -> Any:
        nonlocal count, start, end
        count += 1
        if count == SKIPPED + 1:
            profiler.start()
            start = time.perf_counter()
        if count == SKIPPED + STEPS + 1:
            end = time.perf_counter()
            profiler.stop()
        return forward_batch(batch)

    llm.engine.forward_batch = watched
    llm.generate(prompts, SamplingParams(max_tokens=SKIPPED + STEPS + 1, ignore_eos=True))
    llm.engine.forward_batch = forward_batch
    spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for entry in profiler.key_averages():
        group = spent[group_of(entry.key)]
        group[0] += entry.self_cpu_time_total / 1000 / STEPS
        group[1] += entry.count / STEPS
    outside = 1000 * (end - start) / STEPS - sum(ms for ms, _ in spent.values())
    spent[PYTHON] = [outside, 0.0]
    return dict(spent)


def group_of(operator: str) -> str:
    for group, starts in GROUPS.items():
        if operator.startswith(starts):
            return group
    return "other operators (views, small tensors)"


def main() -> None:
    with StepProcess(8, load) as step:
        step(profile, 0)  # the first profile of a process also pays for the profiler
        runs, gathered = step(profile, 0), step(profile, SHARED)
    totals = [sum(ms for ms, _ in one.values()) for one in (runs, gathered)]
    rows = []
    for group in sorted({*runs, *gathered}, key=lambda name: -runs.get(name, [0.0])[0]):
        (run_ms, run_calls), (gathered_ms, gathered_calls) = (
            one.get(group, [0.0, 0.0]) for one in (runs, gathered)
        )
        rows.append(
            {
                "what": group,
                "runs_ms": run_ms,
                "runs_share": run_ms / totals[0],
                "runs_calls": run_calls,
                "gathered_ms": gathered_ms,
                "gathered_share": gathered_ms / totals[1],
                "gathered_calls": gathered_calls,
            }
        )
    record(
        "ch08_profile",
        f"a decode step of {BATCH_SIZE} requests with a context of {CONTEXT} tokens, SmolLM2 in "
        f"fp32, under torch's profiler, which itself slows small operators down: milliseconds, "
        f"share and calls per group of operators; KV in runs, and with {SHARED} shared tokens in "
        f"another place; means of {STEPS} steps",
        rows,
    )


if __name__ == "__main__":
    main()
