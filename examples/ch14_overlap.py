"""Chapter 14: the same three answers twice: step after step, and each step prepared in advance.

Both are drawn with a line for each stretch of time: what the host does in it, and what the device.
An end is known late in the second: while the host learns that an answer has ended, a row more of it
is being computed, which stands in parentheses and is thrown away.
"""

from _step import model_dir, tr

import itertools
import unicodedata
from typing import Any

import torch

from minisgl import LLM, SamplingParams
from minisgl.llm.prompt import encode
from minisgl.scheduler.request import Request
from minisgl.scheduler.trace import Trace

NAMES = "abc"


def ask(llm: LLM) -> tuple[list[Request], list[dict[str, Any]]]:
    """Three requests: one that the model ends, and two that end after so many tokens."""
    questions = [("What is the capital of France?", 20), ("Count to ten.", 3), ("Hello!", 10)]
    vocab_size = llm.engine.model_config.vocab_size
    requests = []
    for uid, (text, num_tokens) in enumerate(questions):
        ids = encode([{"role": "user", "content": text}], llm.tokenizer, vocab_size)
        params = SamplingParams(max_tokens=num_tokens, ignore_eos=uid > 0)
        requests.append(Request(uid, ids, num_tokens, params))
        llm.scheduler.add(requests[-1])
    llm.scheduler.trace = trace = Trace()
    while not all(request.finish_reason for request in requests):
        llm.scheduler.step()
    llm.scheduler.step()  # takes over what may be in flight
    return requests, trace.events


def stretches(events: list[dict[str, Any]]) -> list[tuple[list[str], list[int], int]]:
    """What the host does, who is computed meanwhile, and in which pass (0: none).

    A pass is computed from its launch on, or from the end of the one before it; its result is
    looked at when it is done.
    """
    lines: list[tuple[list[str], list[int], int]] = []
    in_flight: list[tuple[int, list[int]]] = []
    numbers = itertools.count(1)
    host: list[str] = []
    for event in events:
        if event["event"] == "launch":
            number, before = next(numbers), [*in_flight]
            host.append(tr(f"准备 {number}", f"prepare {number}"))
            in_flight.append((number, [*event["lengths"]]))
            if not before:  # the device had nothing to do meanwhile
                lines.append((host, [], 0))
                host = []
        elif event["event"] == "result":
            number, uids = in_flight.pop(0)
            lines.append((host, uids, number))
            host = [tr(f"取 {number}", f"take {number}")]
        elif event["event"] == "finish":
            host[-1] += tr(f"：{NAMES[event['uid']]} 结束", f": {NAMES[event['uid']]} ends")
    return [*lines, (host, [], 0)]


def draw(title: str, requests: list[Request], events: list[dict[str, Any]]) -> None:
    print(f"\n{title}")
    print("  " + cell(tr("主机", "host")) + tr("设备", "device"))
    ends = {e["uid"]: n for n, e in enumerate(events) if e["event"] == "finish"}
    results = [n for n, e in enumerate(events) if e["event"] == "result"]
    lines = stretches(events)
    wait = tr("等待", "waits")
    num_late = 0
    for host, uids, number in lines:
        late = {uid for uid in uids if ends[uid] < results[number - 1]}
        num_late += len(late)
        rows = " ".join(f"({NAMES[uid]})" if uid in late else NAMES[uid] for uid in uids)
        does = tr("，", ", ").join(host)
        print("  " + cell(does or wait) + (f"{number}: {rows}" if number else wait))
    idle = sum(not number for *_, number in lines)
    num_rows = sum(len(uids) for _, uids, _ in lines)
    num_tokens = sum(len(request.token_ids) for request in requests)
    print(
        tr(
            f"  {len(lines)} 段时间里，设备有 {idle} 段在等",
            f"  the device waits in {idle} of {len(lines)} stretches",
        )
    )
    print(
        tr(
            f"  算了 {num_rows} 行，得到 {num_tokens} 个 token，丢掉的行：{num_late}",
            f"  {num_rows} rows for {num_tokens} tokens; thrown away: {num_late}",
        )
    )


def cell(text: str) -> str:
    """The text, filled up to the width of the host's column; a Chinese character takes two."""
    width = sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
    return text + " " * (34 - width)


torch.set_num_threads(2)
ways = {
    tr("一步接一步", "one step after the other"): False,
    tr("提前准备下一步", "the next step is prepared meanwhile"): True,
}
answers = []
for title, overlap in ways.items():
    with LLM(model_dir(), max_seq_len=64, overlap=overlap) as llm:
        requests, events = ask(llm)
        draw(title, requests, events)
        answers.append([request.token_ids for request in requests])
print(f"\n{tr('回答相同', 'the answers are the same')}: {answers[0] == answers[1]}")
