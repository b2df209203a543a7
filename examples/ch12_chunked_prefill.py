"""Chapter 12: a step has a budget of tokens, so a long prompt stalls nobody.

A long prompt comes while three requests are running: drawn step by step, without a budget and with
one. Then a question is cut into pieces of many sizes, and prompts come one per step.
"""

from _step import measured, model_dir, tr

import itertools
import time
from dataclasses import replace
from typing import Any

import torch

from minisgl import LLM, SamplingParams
from minisgl.llm.prompt import encode
from minisgl.scheduler.request import Request
from minisgl.scheduler.trace import Trace

QUESTION = "请解释什么是 KV Cache？"
NO_BUDGET = 10**6
LETTER = 16  # tokens of a prompt
uids = itertools.count(1000)

Step = tuple[dict[int, tuple[int, int]], float]


def request(prompt: Any, num_tokens: int) -> Request:
    ids = encode(prompt, llm.tokenizer, llm.engine.model_config.vocab_size)
    params = SamplingParams(max_tokens=num_tokens, ignore_eos=True)
    return Request(next(uids), ids, num_tokens, params)


def words(seed: int, count: int) -> list[int]:
    """A prompt that begins like no other."""
    chance = torch.Generator().manual_seed(seed)
    return torch.randint(100, 40_000, (count,), generator=chance).tolist()


def use_budget(num_tokens: int) -> None:
    llm.engine.config = replace(llm.engine.config, max_batch_tokens=num_tokens)


def name(budget: int) -> str:
    return (
        tr("没有预算", "no budget")
        if budget == NO_BUDGET
        else tr(f"预算 {budget}", f"budget {budget}")
    )


def step() -> Step:
    """One step: from which token to which it computed each request, and its milliseconds."""
    llm.scheduler.trace = trace = Trace()
    start = time.perf_counter()
    llm.scheduler.step()
    milliseconds = 1000 * (time.perf_counter() - start)
    [launch] = [event for event in trace.events if event["event"] == "launch"]
    return launch["lengths"], milliseconds


def arrival(budget: int) -> tuple[list[Step], list[list[int]]]:
    """Three run when a prompt of 400 tokens comes, before step 4: all steps, everybody's tokens."""
    use_budget(budget)
    everybody = [request(f"{number}, {number + 1},", 12) for number in (1, 5, 9)]
    for one in everybody:
        llm.scheduler.add(one)
    steps = [step() for _ in range(3)]
    everybody.append(long := request(words(seed=0, count=400), 3))
    llm.scheduler.add(long)
    first_token = 0.0
    while not all(one.finish_reason for one in everybody):
        waits = not long.token_ids
        steps.append(step())
        first_token += steps[-1][1] * waits
    print(f"\n{name(budget)}")
    letters = dict(zip([one.uid for one in everybody], "abcL", strict=True))
    for number, (lengths, milliseconds) in enumerate(steps, 1):
        counts = {letters[uid]: end - begin for uid, (begin, end) in lengths.items()}
        line = "".join(letter * -(-count // LETTER) for letter, count in counts.items())
        print(f"  {number:>2} {line} {measured(milliseconds, '.0f')} ms")
    gap = max(milliseconds for _, milliseconds in steps[1:])
    print(f"  {tr('一步最长', 'longest step')}: {measured(gap, '.0f')} ms, ", end="")
    print(f"{tr('L 的首 token', 'first token of L')}: {measured(first_token, '.0f')} ms")
    return steps, [one.token_ids for one in everybody]


def pieces() -> None:
    """The same question, cut into pieces of any size."""
    chat = [{"role": "user", "content": QUESTION}]
    length = len(request(chat, 8).input_ids)
    print(f"\n> {QUESTION}  {tr(f'提示词 {length} 个 token', f'a prompt of {length} tokens')}")
    answers = []
    for budget in (NO_BUDGET, length + 1, length, length - 1, 7, 1):
        use_budget(budget)
        llm.scheduler.add(one := request(chat, 8))
        sizes = []
        while one.finish_reason is None:
            [(begin, end)] = step()[0].values()
            sizes.append(end - begin)
        answers.append(one.token_ids)
        parts = sizes[:-7]  # the first of eight tokens comes with the last part
        print(f"  {name(budget)}: {tr('块数', 'pieces')} {len(parts)}", end=", ")
        print(f"{tr('答案相同', 'same answer')}: {answers[-1] == answers[0]}")
    print(f"  {llm.tokenizer.decode(answers[0])!r}")


def one_per_step() -> None:
    """Prompts of 40 tokens come one per step, while somebody runs."""
    budget, count = 32, 20
    use_budget(budget)
    llm.scheduler.add(running := request("1, 2,", count + 1))
    step()
    everybody, sizes = [], []
    for number in range(count):
        everybody.append(request(words(seed=1 + number, count=40), 3))
        llm.scheduler.add(everybody[-1])
        sizes.append(sum(end - begin for begin, end in step()[0].values()))
    begun = sum(bool(one.token_ids) for one in everybody)
    print(f"\n{tr('每步来一个 40 个 token 的提示词', 'a prompt of 40 tokens comes in each step')}")
    print(f"  {tr('每步的 token', 'tokens of each step')}: {sizes}")
    print(f"  {tr('正在跑的', 'who runs')}: {len(running.token_ids) - 1} token, ", end="")
    print(
        tr(f"新来的 {count} 个里 {begun} 个有了首 token", f"{begun} of {count} others have begun")
    )
    while not all(one.finish_reason for one in [running, *everybody]):
        step()


torch.set_num_threads(2)
# A page that nobody fills: nothing is cached, so every run computes all of its prompts.
with LLM(model_dir(), max_seq_len=448, page_size=448, num_pages=8) as llm:
    llm.generate([words(seed=99, count=64)], SamplingParams(max_tokens=2))  # the first is slow
    runs = [arrival(NO_BUDGET), arrival(budget=128)]
    print(f"\n{tr('两次的 token 相同', 'the tokens are the same')}: {runs[0][1] == runs[1][1]}")
    pieces()
    one_per_step()
    llm.scheduler.check_invariants()
