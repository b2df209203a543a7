"""Chapter 10: a request joins at the next step and leaves as soon as it is done.

The same eight requests are served twice and drawn pass by pass: in static batches, and as the
scheduler does it. Then one request is followed through its states, others end early, and requests
that begin alike wait for each other.
"""

from _step import measured, model_dir, tr

import itertools
import time
from typing import Any
from unittest.mock import patch

import torch

from minisgl import LLM, SamplingParams
from minisgl.llm.prompt import encode
from minisgl.scheduler import prefill
from minisgl.scheduler.request import Request
from minisgl.scheduler.trace import Trace

QUESTION = "请解释什么是 KV Cache？"
LENGTHS = [3, 12, 5, 7, 4, 9, 3, 6]  # of the answers to eight prompts, in tokens
SYSTEM = {"role": "system", "content": "Answer the question in one short sentence. " * 10}
CITIES = ["Paris", "Rome", "Berlin", "Madrid"]
uids = itertools.count(1000)


def request(prompt: Any, num_tokens: int, **options: Any) -> Request:
    ids = encode(prompt, llm.tokenizer, llm.engine.model_config.vocab_size)
    params = SamplingParams(max_tokens=num_tokens, ignore_eos=True)
    return Request(next(uids), ids, num_tokens, params, **options)


def serve(*groups: list[Request]) -> list[dict[int, str]]:
    """Serve one group after the other; for each pass, what it did for whom: P or D."""
    llm.scheduler.trace = trace = Trace()
    for group in groups:
        for one in group:
            llm.scheduler.add(one)
        while not all(one.finish_reason for one in group):
            llm.scheduler.step()
    launches = [event for event in trace.events if event["event"] == "launch"]
    return [dict.fromkeys(launch["lengths"], launch["phase"][0].upper()) for launch in launches]


def timelines() -> None:
    prompts = [f"{number}, {number + 1}," for number in range(len(LENGTHS))]

    def requests() -> list[Request]:
        return [request(*pair) for pair in zip(prompts, LENGTHS, strict=True)]

    serve(requests())  # a warm-up: the first passes are slow
    for name, size in ((tr("静态", "static"), 4), (tr("连续", "continuous"), 8)):
        everybody = requests()
        groups = [everybody[i : i + size] for i in range(0, len(everybody), size)]
        start = time.perf_counter()
        passes = serve(*groups)
        tokens_per_second = sum(LENGTHS) / (time.perf_counter() - start)
        rows = sum(len(one) for one in passes) / len(passes)
        print(f"\n{name}: {len(passes)} {tr('趟', 'passes')}, ", end="")
        print(tr(f"平均每趟 {rows:.1f} 行", f"{rows:.1f} rows each"), end=", ")
        print(f"{measured(tokens_per_second, '.0f')} token/s")
        for letter, one in zip("abcdefgh", everybody, strict=True):
            print(f"  {letter} {bar(one.uid, passes)}")


def bar(uid: int, passes: list[dict[int, str]]) -> str:
    """Where a request waits there is a dot."""
    mine = [number for number, one in enumerate(passes) if uid in one]
    return "".join(one.get(uid, "·") for one in passes[: mine[-1] + 1])


def states() -> None:
    print(f"\n> {QUESTION}  max_tokens = 8")
    one = request([{"role": "user", "content": QUESTION}], 8)
    llm.scheduler.add(one)
    print(f"  {one.state.name}")
    while one.finish_reason is None:
        llm.scheduler.step()
        text = llm.tokenizer.decode(one.token_ids)
        print(f"  {one.state.name:<9}{len(one.token_ids)} {text!r}")
    print(f"  {tr('原因', 'reason')}: {one.finish_reason}")


def early_ends() -> None:
    """A second passes per step; the scores of the third request turn to NaN in the fourth pass."""
    prompt = "1, 2, 3,"
    [alone] = llm.generate(prompt, SamplingParams(max_tokens=8, ignore_eos=True))
    names = [
        tr("正常", "untouched"),
        tr("第 3 步前取消", "cancelled before step 3"),
        tr("得到 NaN", "given NaN"),
        tr("限时 5 秒", "5 seconds at most"),
        tr("排队限时 2 秒", "2 seconds to wait at most"),
    ]
    limits = [{}, {}, {}, {"timeout": 5.0}, {"queue_timeout": 2.0}]
    requests = [request(prompt, 8, **limit) for limit in limits]
    for one in requests:
        llm.scheduler.add(one)
    forward = llm.engine.model.forward
    for number in range(1, 10):
        if number == 3:
            llm.scheduler.abort(requests[1].uid)

        def poisoned(number: int = number) -> torch.Tensor:
            logits = forward()
            if number == 4:
                logits[1] = torch.nan  # the third has moved up
            return logits

        with patch.object(llm.engine.model, "forward", poisoned):
            llm.scheduler.step(now=float(number))
    print()
    for name, one in zip(names, requests, strict=True):
        right = alone.token_ids[: len(one.token_ids)] == one.token_ids
        print(f"  {len(one.token_ids)} token, {tr('都对', 'all right')}: {right}, ", end="")
        print(f"{one.state.name:<8} {one.finish_reason:<8} {name}")
    llm.scheduler.check_invariants()  # every row and page is back


def in_batch_sharing() -> None:
    """Four questions under one system prompt come at once."""
    print()
    for name, limit in (
        (tr("等", "they wait"), prefill.MIN_SHARED_TOKENS),
        (tr("不等", "they do not"), 10**9),
    ):
        questions = [f"{name}: where is {city}?" for city in CITIES]
        system = {"role": "system", "content": f"{name}. {SYSTEM['content']}"}
        chats = [[system, {"role": "user", "content": question}] for question in questions]
        with patch.object(prefill, "MIN_SHARED_TOKENS", limit):
            llm.scheduler.trace = trace = Trace()
            start = time.perf_counter()
            llm.generate(chats, SamplingParams(max_tokens=1))
            seconds = time.perf_counter() - start
        launches = [event["lengths"] for event in trace.events if event["event"] == "launch"]
        counts = [sum(end - begin for begin, end in lengths.values()) for lengths in launches]
        print(f"  {name}: {tr('每趟算的 token', 'tokens per pass')} {counts}, ", end="")
        print(f"{measured(1000 * seconds, '.0f')} ms")


torch.set_num_threads(2)
with LLM(model_dir(), max_running_reqs=4, max_seq_len=512) as llm:
    timelines()
    states()
    early_ends()
    in_batch_sharing()
