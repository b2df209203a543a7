"""Chapter 13: a request holds what it is expected to need, and the youngest gives way.

The same questions are asked twice of a small pool and drawn pass by pass: with pages for the
longest answers, and with pages for those that are expected. Then two answers need the last page,
and questions about three texts are taken in two orders.
"""

from _step import measured, model_dir, tr

import itertools
import time
from typing import Any
from unittest.mock import patch

import torch

from minisgl import LLM, SamplingParams
from minisgl.llm.prompt import encode
from minisgl.scheduler.estimate import LengthEstimate
from minisgl.scheduler.lifecycle import State
from minisgl.scheduler.request import Request
from minisgl.scheduler.trace import Trace

COUNTRIES = ["France", "Italy", "Japan", "Spain", "Egypt", "Peru", "Cuba", "Chile", "Iran", "India"]
VOICES = ["a poet", "a lawyer", "a child"]
uids = itertools.count(1000)

Lengths = dict[int, tuple[int, int]]  # uid to (cached_len, device_len)


def request(llm: LLM, prompt: Any, num_tokens: int, ignore_eos: bool = True) -> Request:
    ids = encode(prompt, llm.tokenizer, llm.engine.model_config.vocab_size)
    params = SamplingParams(max_tokens=num_tokens, ignore_eos=ignore_eos)
    return Request(next(uids), ids, num_tokens, params)


def question(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def num_pages(requests: list[Request], page_size: int) -> tuple[int, int]:
    """How many pages are held by those who run, and in how many of them is KV."""
    held, written = set[int](), set[int]()
    for one in requests:
        if one.state in (State.PREFILL, State.DECODE):
            pages = one.req.cache_handle.pages
            held.update(pages)
            written.update(pages[: -(-one.req.cached_len // page_size)])
    return len(held), len(written)


# --- the same pool, twice ---------------------------------------------------------------------


def longest_len(_: LengthEstimate, one: Request) -> int:
    return one.output_len


def same_pool() -> None:
    """Ten questions, answers of at most 64 tokens, 40 pages of 8 tokens."""
    expected_len = LengthEstimate.expected_len
    with LLM(model_dir(), max_seq_len=160, page_size=8, num_pages=40) as llm:
        ways = {
            tr("按最长的回答留页", "pages for the longest answer"): longest_len,
            tr("按预计的回答留页", "pages for the expected answer"): expected_len,
        }
        answers = []
        for name, way in ways.items():
            forget(llm)
            with patch.object(LengthEstimate, "expected_len", way):
                answers.append(ask(llm, name))
    print(f"\n{tr('两次的回答相同', 'the answers are the same')}: {answers[0] == answers[1]}")


def forget(llm: LLM) -> None:
    """Let prompts of one token over and over evict whatever is cached."""
    for token in (3, 4):
        llm.generate([[token] * 159], SamplingParams(max_tokens=1))


def ask(llm: LLM, name: str) -> list[list[int]]:
    chats = [question(f"What is the capital of {country}?") for country in COUNTRIES]
    everybody = [request(llm, chat, 64, ignore_eos=False) for chat in chats]
    for one in everybody:
        llm.scheduler.add(one)
    llm.scheduler.trace = trace = Trace()
    counts = []
    start = time.perf_counter()
    while not all(one.finish_reason for one in everybody):
        llm.scheduler.step()
        counts.append(num_pages(everybody, page_size=8))
    seconds = time.perf_counter() - start
    passes = [event["lengths"] for event in trace.events if event["event"] == "launch"]
    tokens = [one.token_ids for one in everybody]
    rows = sum(map(len, passes)) / len(passes)
    held, written = (sum(column) / len(counts) for column in zip(*counts, strict=True))
    print(f"\n{name}: {len(passes)} {tr('趟', 'passes')}, ", end="")
    print(tr(f"平均每趟 {rows:.1f} 行", f"{rows:.1f} rows each"), end=", ")
    print(f"{measured(sum(map(len, tokens)) / seconds, '.0f')} token/s")
    print(f"  {tr('占着的页', 'pages held')} {held:.0f}, {tr('写过的', 'written')} {written:.0f}")
    for letter, one in zip("abcdefghij", everybody, strict=True):
        print(f"  {letter} {bar(one, passes)}")
    return tokens


def bar(one: Request, passes: list[Lengths]) -> str:
    """P while its prompt is computed, D for each token after it; where it waits there is a dot."""
    mine = {n: lengths[one.uid] for n, lengths in enumerate(passes) if one.uid in lengths}
    signs = {n: "PD"[end > len(one.input_ids)] for n, (_, end) in mine.items()}
    return "".join(signs.get(n, "·") for n in range(max(mine) + 1))


# --- the last page ----------------------------------------------------------------------------


def last_page() -> None:
    """Two answers of 20 tokens; twelve pages of 4 tokens do not hold both."""
    prompts = ["1, 2, 3, 4,", "10, 11, 12,"]
    with LLM(model_dir(), max_seq_len=49, page_size=4, num_pages=12) as llm:
        alone = [llm.generate(prompt, limit(20))[0].token_ids for prompt in prompts]
        both = [request(llm, prompt, 20) for prompt in prompts]
        for one in both:
            llm.scheduler.add(one)
        llm.scheduler.trace = trace = Trace()
        print()
        print(
            tr(
                "步；先来的、后来的（状态、token、页）；一共占的页",
                "step; the older, the younger (state, tokens, pages); pages of both",
            )
        )
        before: list[Any] = []
        for number in itertools.count(1):
            llm.scheduler.step()
            now = [(one.state.name, num_pages([one], page_size=4)[0]) for one in both]
            if now != before:
                columns = [
                    f"{state:<9}{len(one.token_ids):>2}{count:>3}"
                    for one, (state, count) in zip(both, now, strict=True)
                ]
                print(f"  {number:>2}  {'   '.join(columns)}   {sum(n for _, n in now):>2}")
            before = now
            if all(one.finish_reason for one in both):
                break
    begin, end = resumed_at(both[1], trace)
    print("  ", end="")
    print(
        tr(
            f"后来的回来时：已知 {end} 个 token，其中 {begin} 个还在缓存里",
            f"the younger is back: {end} tokens are known, {begin} of them are still cached",
        )
    )
    same = [one.token_ids for one in both] == alone
    print(f"  {tr('与各自独自回答时相同', 'as each is answered alone')}: {same}")


def resumed_at(one: Request, trace: Trace) -> tuple[int, int]:
    """What the first pass after its retraction computed of a request."""
    kinds = [event["event"] for event in trace.events]
    later = trace.events[kinds.index("retract") :]
    launches = [event["lengths"] for event in later if event["event"] == "launch"]
    found: tuple[int, int] = next(lengths[one.uid] for lengths in launches if one.uid in lengths)
    return found


def limit(num_tokens: int) -> SamplingParams:
    return SamplingParams(max_tokens=num_tokens, ignore_eos=True)


# --- two orders -------------------------------------------------------------------------------


def orders() -> None:
    """Nine questions, the three voices in turns; the pool has room for one at a time."""
    print()
    for policy in ("fcfs", "lpm"):
        options: dict[str, Any] = {"page_size": 8, "num_pages": 20, "max_running_reqs": 1}
        with LLM(model_dir(), max_seq_len=160, schedule_policy=policy, **options) as llm:
            chats = [
                [
                    {"role": "system", "content": f"Answer like {voice}. " * 16},
                    *question(f"{number} + {number}?"),
                ]
                for number, voice in zip(range(9), itertools.cycle(VOICES))
            ]
            start = time.perf_counter()
            outputs = llm.generate(chats, limit(2))
            seconds = time.perf_counter() - start
            known = sum(output.num_cached_tokens for output in outputs)
            total = sum(output.num_prompt_tokens for output in outputs)
            print(f"  {policy}: ", end="")
            print(
                tr(
                    f"{total} 个提示词 token 里 {known} 个来自缓存",
                    f"{known} of {total} prompt tokens from the cache",
                ),
                end=", ",
            )
            print(f"{measured(1000 * seconds, '.0f')} ms")


torch.set_num_threads(2)
same_pool()
last_page()
orders()
