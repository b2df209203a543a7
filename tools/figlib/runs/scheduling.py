"""The recorders of chapters 10 and 12."""

import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))  # behind the tree of the step

from tools.figlib.runs.listening import Trace, listen, run_example


def ready() -> None:
    """The processes of the step need no setting up."""


def ch10_scheduler(_: None) -> Trace:
    """The passes of the example's runs: who was in each, and which of its tokens."""
    from minisgl.scheduler import trace

    runs: list[Any] = []

    def made(_: None, one: Any) -> None:
        runs.append(one)

    listen(trace.Trace, "__init__", made)
    names = run_example("ch10_scheduler")
    count = len(names["LENGTHS"])
    _, static, continuous, waiting, together = runs  # the first one fills the cache
    return {
        "static": _passes(static, count),
        "continuous": _passes(continuous, count),
        "they_wait": _passes(waiting, count),
        "they_do_not": _passes(together, count),
    }


def _passes(run: Any, count: int) -> list[Trace]:
    """Each pass of the first `count` requests, with their numbers: (KV before, and after)."""
    order: dict[int, int] = {}
    found: list[Trace] = []
    for event in run.events:
        if event["event"] == "add":
            if len(order) == count:  # the example goes on with others
                break
            order[event["uid"]] = len(order)
        elif event["event"] == "launch":
            batch = [[order[uid], *lengths] for uid, lengths in event["lengths"].items()]
            found.append({"phase": event["phase"], "batch": batch})
    return found


def ch12_static(_: None) -> Trace:
    """What chapter 12's example does, in the static batches of step 9."""
    return _arrival()


def ch12_continuous(_: None) -> Trace:
    """The same as step 10 schedules it: prompts first, and whole."""
    return _arrival()


def _arrival() -> Trace:
    """Three requests run when a prompt of 400 tokens comes, before the fourth step."""
    from _step import model_dir

    import torch

    from minisgl import LLM, SamplingParams
    from minisgl.scheduler.request import Request

    passes: list[Trace] = []
    torch.set_num_threads(2)
    with LLM(model_dir(), max_seq_len=448, page_size=448, num_pages=8) as llm:
        forward_batch = llm.engine.forward_batch

        def timed(batch: Any) -> Any:
            lengths = [[req.uid, req.cached_len, req.device_len] for req in batch.reqs]
            start = time.perf_counter()
            output = forward_batch(batch)
            passes.append({"ms": 1000 * (time.perf_counter() - start), "batch": lengths})
            return output

        params = SamplingParams(ignore_eos=True)
        chance = torch.Generator().manual_seed(0)
        words = torch.randint(100, 40_000, (400,), generator=chance).tolist()
        llm.generate([words[:64]], SamplingParams(max_tokens=2))  # the first is slow
        setattr(llm.engine, "forward_batch", timed)  # noqa: B010  (an assignment would need its type)
        everybody = [
            Request(uid, llm.tokenizer(text)["input_ids"], 12, params)
            for uid, text in enumerate(["1, 2,", "5, 6,", "9, 10,"], 1000)
        ]
        for one in everybody:
            llm.scheduler.add(one)
        for _ in range(3):
            llm.scheduler.step()
        everybody.append(Request(1003, words, 3, params))
        llm.scheduler.add(everybody[-1])
        while not all(one.finish_reason for one in everybody):
            llm.scheduler.step()
    return {"passes": _numbered(passes)}


def ch12_chunked_prefill(_: None) -> Trace:
    """The steps of the example's two runs: their milliseconds, and what they computed of whom."""
    names = run_example("ch12_chunked_prefill")
    runs = []
    for steps, _tokens in names["runs"]:
        passes = [
            {"ms": ms, "batch": [[uid, *pair] for uid, pair in lengths.items()]}
            for lengths, ms in steps
        ]
        runs.append(_numbered(passes))
    return {"no_budget": runs[0], "budget": runs[1]}


def _numbered(passes: list[Trace]) -> list[Trace]:
    """With requests by their number, in the order in which they came."""
    order = sorted({uid for one in passes for uid, *_ in one["batch"]})
    return [
        {"ms": round(one["ms"], 1), "batch": [[order.index(u), *pair] for u, *pair in one["batch"]]}
        for one in passes
    ]
