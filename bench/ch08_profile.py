"""Chapter 8: where the time of a decode step goes, at batch 8 and a context of 256 tokens.

Three layouts of the same amount of KV, since sharing a prefix changes two things at once. In the
first, each request's KV is its own and one run of the pool, read in place. In the second it is its
own and scattered, so that it is gathered before it is read. In the third the requests share a
prefix: all but the first, which follows it in the pool, have pages in two places and gather too,
but most of what they gather is the same memory.
"""

import random
import time
from collections import defaultdict
from statistics import median
from typing import Any

from _bench import StepProcess, record

BATCH_SIZE, CONTEXT, SHARED = 8, 256, 224
LAYOUTS = ("runs", "scattered", "gathered")  # own in place, own gathered, shared and gathered
SKIPPED, STEPS, ROUNDS = 2, 8, 3
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
    num_pages = (1 + len(LAYOUTS) * ROUNDS) * BATCH_SIZE * (CONTEXT // 16 + 1)
    return LLM(model_dir(), max_seq_len=CONTEXT + 16, num_pages=num_pages), random.Random(0)


def profile(state: Any, layout: str) -> dict[str, list[float]]:
    """Group of operators: milliseconds and calls per step."""
    import torch

    from minisgl.core import SamplingParams
    from minisgl.kvcache.allocator import PageAllocator

    llm, chance = state
    shared_len = SHARED if layout == "gathered" else 0
    common = [chance.randrange(100, 40_000) for _ in range(shared_len)]
    rest = range(CONTEXT - shared_len)
    prompts = [[*common, *(chance.randrange(100, 40_000) for _ in rest)] for _ in range(BATCH_SIZE)]
    if common:
        llm.generate(common, SamplingParams(max_tokens=1))
    allocate = PageAllocator.allocate

    def scatter(*args: Any, **options: Any) -> list[int]:
        return allocate(*args, **options)[::-1]  # no page follows the one before it

    if layout == "scattered":
        PageAllocator.allocate = scatter  # type: ignore[method-assign]
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
    PageAllocator.allocate = allocate  # type: ignore[method-assign]
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


def medians(rounds: list[dict[str, list[float]]]) -> dict[str, list[float]]:
    """Of each group, over the rounds."""
    groups = {group for one in rounds for group in one}
    return {
        group: [median(one.get(group, [0.0, 0.0])[n] for one in rounds) for n in (0, 1)]
        for group in groups
    }


def main() -> None:
    with StepProcess(8, load) as step:
        step(profile, "runs")  # the first profile of a process also pays for the profiler
        rounds = [{layout: step(profile, layout) for layout in LAYOUTS} for _ in range(ROUNDS)]
    spent = {layout: medians([one[layout] for one in rounds]) for layout in LAYOUTS}
    totals = {layout: sum(ms for ms, _ in spent[layout].values()) for layout in LAYOUTS}
    groups = {group for layout in LAYOUTS for group in spent[layout]}
    rows: list[dict[str, Any]] = []
    for group in sorted(groups, key=lambda name: -spent["runs"].get(name, [0.0])[0]):
        row: dict[str, Any] = {"what": group}
        for layout in LAYOUTS:
            ms, calls = spent[layout].get(group, [0.0, 0.0])
            row |= {f"{layout}_ms": ms, f"{layout}_share": ms / totals[layout]}
            row[f"{layout}_calls"] = calls
        rows.append(row)
    record(
        "ch08_profile",
        f"a decode step of {BATCH_SIZE} requests with a context of {CONTEXT} tokens, SmolLM2 in "
        f"fp32, under torch's profiler, which itself slows small operators down: milliseconds, "
        f"share and calls per group of operators; each request's own KV in one run and read in "
        f"place, its own KV scattered and gathered, and with {SHARED} shared tokens, gathered too; "
        f"means of {STEPS} steps, medians of {ROUNDS} rounds",
        rows,
    )


if __name__ == "__main__":
    main()
