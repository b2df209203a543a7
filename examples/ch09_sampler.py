"""Chapter 9: the tokens of a batch: each row by its own rules and its own randomness.

A request gets the same tokens alone and in a crowd; the filters are thresholds on probabilities;
and the table shows what choosing a token costs with them, and what it costs with a sort.
"""

from _step import measured, model_dir, tr

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from minisgl import LLM, SamplingParams
from minisgl.engine.randomness import uniform
from minisgl.engine.sample import SamplingArgs, draw, filtered_probs, make_filters, sample

CPU = torch.device("cpu")
STORY = "Once upon a time there was a"
SEEDED = SamplingParams(temperature=0.8, top_p=0.9, seed=1, max_tokens=12)


def alone_and_in_a_crowd(llm: LLM) -> None:
    """The same request among seven others, and in two other places of the batch."""
    others = [
        SamplingParams(max_tokens=12),
        SamplingParams(temperature=1.5, max_tokens=5),
        SamplingParams(temperature=0.8, top_k=40, seed=2, max_tokens=12),
        SamplingParams(temperature=0.8, min_p=0.1, max_tokens=9),
        SamplingParams(repetition_penalty=1.3, max_tokens=12),
        SamplingParams(temperature=0.8, frequency_penalty=0.5, max_tokens=12),
        replace(SEEDED, seed=3),
    ]
    [alone] = llm.generate(STORY, SEEDED)
    print(f"> {STORY} …\n  {alone.text!r}")
    for place in (0, 3, 7):
        crowd = [*others[:place], SEEDED, *others[place:]]
        ours = llm.generate([STORY] * 8, crowd)[place]
        same = ours.token_ids == alone.token_ids
        print(tr(f"  8 个一起，排在第 {place}：", f"  one of 8, at place {place}:"), same)


def a_draw_again(probs: torch.Tensor) -> None:
    """Tokens 3 and 4 are drawn twice, as after a preemption: where does the randomness stand?"""
    generator = torch.Generator().manual_seed(1)

    def by_generator(index: int) -> int:
        return int(torch.multinomial(probs, 1, generator=generator))

    def by_hash(index: int) -> int:
        return int(draw(probs, torch.tensor([[uniform(1, index)]], dtype=torch.float64)))

    print(tr("\n把第 3、4 个 token 再抽一次：", "\ntokens 3 and 4 are drawn again:"))
    names = tr("生成器", "generator"), tr("哈希", "hash")
    for name, token in zip(names, (by_generator, by_hash), strict=True):
        first = [token(index) for index in range(5)]
        again = [token(index) for index in (3, 4)]
        same = tr("相同：", "the same:"), again == first[3:]
        print(f"  {name}: {words(first)} | {words(again)}", *same)


def filters() -> None:
    """The same filters keep few tokens where the model is sure, and many where it is not."""
    prompts = "The capital of France is", "My favourite colour is"
    print(tr("\n留下几个 token：", "\ntokens that stay:"), " | ".join(prompts))
    for name, params in {
        tr("全部", "all"): SamplingParams(temperature=1.0),
        "top-k 3": SamplingParams(temperature=1.0, top_k=3),
        "top-p 0.7": SamplingParams(temperature=1.0, top_p=0.7),
        "min-p 0.1": SamplingParams(temperature=1.0, min_p=0.1),
    }.items():
        print(f"  {name:<10}", " | ".join(row_of(prompt, params) for prompt in prompts))


def row_of(prompt: str, params: SamplingParams) -> str:
    logits = scores_of(prompt)[-1:]
    probs = filtered_probs(logits, make_filters([params], [0.0], logits.shape[-1], CPU))[0]
    count, best = int((probs > 0).sum()), probs.topk(3)
    return f"{count:>5} {words(best.indices[best.values > 0].tolist())}"


def penalties(llm: LLM) -> None:
    prompt = "1, 1, 1, 1,"
    print(f"\n> {prompt}")
    for name, params in {
        tr("贪心", "greedy"): SamplingParams(max_tokens=16),
        "repetition 1.3": SamplingParams(repetition_penalty=1.3, max_tokens=16),
        "presence 1.5": SamplingParams(presence_penalty=1.5, max_tokens=16),
        "frequency 1.5": SamplingParams(frequency_penalty=1.5, max_tokens=16),
    }.items():
        print(f"  {name:<16}{llm.generate(prompt, params)[0].text!r}")


def logprobs(llm: LLM) -> None:
    """These are of the model's own distribution, whatever temperature and filters did."""
    prompt, params = "The capital of France is", replace(SEEDED, max_tokens=4, logprobs=2)
    [output] = llm.generate(prompt, params)
    print(f"\n> {prompt}{output.text}")
    for entry in output.logprobs or []:
        best = (f"{words([token])} {measured(value, '.2f')}" for token, value in entry.top)
        chosen = f"{words([entry.token_id])} {measured(entry.logprob, '.2f')}"
        print(f"  {chosen:<24}", tr("最可能的：", "best:"), ", ".join(best))


def cost() -> None:
    print(tr("\n每行毫秒：", "\nms per row:"))
    print(tr("  行数    排序    阈值    倍数", "  rows    sort  thresh.  ratio"))
    params = SamplingParams(temperature=0.8, top_p=0.9)
    for rows in (1, 8, 32):
        logits = scores_of(" ".join([STORY] * 8))[:rows]
        filters = make_filters([params] * rows, [0.5] * rows, logits.shape[-1], CPU)
        args = SamplingArgs(filters, [], [None] * rows)
        by_sort = milliseconds(lambda scores=logits: sorted_draw(scores)) / rows
        by_threshold = milliseconds(lambda scores=logits, a=args: sample(scores, a)) / rows
        figures = measured(by_sort, ".2f"), measured(by_threshold, ".2f")
        print(f"{rows:>6}{figures[0]:>8}{figures[1]:>8}{measured(by_sort / by_threshold):>8}")


def sorted_draw(logits: torch.Tensor) -> torch.Tensor:
    """Top-p as chapter 4 computes it."""
    probs, tokens = (logits / 0.8).softmax(-1).sort(descending=True)
    probs[probs.cumsum(-1) - probs >= 0.9] = 0
    return tokens.gather(-1, torch.multinomial(probs, 1))


def milliseconds(call: Callable[[], object]) -> float:
    call()
    start = time.perf_counter()
    for _ in range(5):
        call()
    return 1000 * (time.perf_counter() - start) / 5


def words(token_ids: list[int]) -> str:
    return " ".join(repr(tokenizer.decode(token)) for token in token_ids)


@torch.inference_mode()
def scores_of(text: str) -> torch.Tensor:
    """The logits after each token of a text, `[num_tokens, vocab_size]`."""
    scores: torch.Tensor = oracle()(**tokenizer(text, return_tensors="pt")).logits
    return scores[0].clone()


@cache
def oracle() -> Any:
    return AutoModelForCausalLM.from_pretrained(model_dir(), dtype=torch.float32)


torch.set_num_threads(2)
tokenizer = AutoTokenizer.from_pretrained(model_dir())
with LLM(model_dir(), max_seq_len=256) as llm:
    alone_and_in_a_crowd(llm)
    a_draw_again(scores_of("My favourite colour is")[-1:].softmax(-1))
    filters()
    penalties(llm)
    logprobs(llm)
    cost()
