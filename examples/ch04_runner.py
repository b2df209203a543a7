"""Chapter 4: from logits to text: a loop of computing, choosing and appending.

The tokens are those of transformers; how they are chosen is the caller's; and the table shows
what the loop costs while every token computes all before it again.
"""

from _step import measured, model_dir, tr

import time

import torch
from transformers import AutoModelForCausalLM

from minisgl import LLM, SamplingParams
from minisgl.llm import GenerateOutput


def show(prompt: str, output: GenerateOutput) -> None:
    print(f"> {prompt}\n{output.text}")
    print(f"[{output.num_prompt_tokens} + {len(output.token_ids)} tokens, {output.finish_reason}]")


def compare(llm: LLM, prompt: str) -> None:
    [output] = llm.generate(prompt, SamplingParams(max_tokens=32))
    oracle = AutoModelForCausalLM.from_pretrained(llm.engine.folder, dtype=torch.float32)
    ids = llm.tokenizer(prompt, return_tensors="pt")
    expected = oracle.generate(**ids, max_new_tokens=32, do_sample=False)
    same = output.token_ids == expected[0, output.num_prompt_tokens :].tolist()
    show(prompt, output)
    print(tr("与 transformers 相同：", "equal to transformers:"), same)


def running_example(llm: LLM) -> None:
    """The request that comes back through the book; eight tokens end it by length."""
    question = [{"role": "user", "content": "请解释什么是 KV Cache？"}]
    output = llm.chat(question, SamplingParams(max_tokens=8))
    print()
    show(question[0]["content"], output)
    tokens = [llm.tokenizer.decode(token) for token in output.token_ids]
    print(tr("逐个 token：", "token by token:"), tokens)


def sampling(llm: LLM) -> None:
    """How tokens are chosen is a property of the request: the same seed gives the same text."""
    prompt = "Once upon a time there was a"
    greedy, again = tr("贪心", "greedy"), tr("seed 1，再来一次", "seed 1 again")
    settings = {
        greedy: SamplingParams(max_tokens=12),
        "seed 1": SamplingParams(temperature=0.8, top_p=0.9, seed=1, max_tokens=12),
        "seed 2": SamplingParams(temperature=0.8, top_p=0.9, seed=2, max_tokens=12),
        again: SamplingParams(temperature=0.8, top_p=0.9, seed=1, max_tokens=12),
        "temperature 2": SamplingParams(temperature=2.0, seed=1, max_tokens=12),
        "temperature 2, top_k 5": SamplingParams(temperature=2.0, top_k=5, seed=1, max_tokens=12),
    }
    outputs = llm.generate([prompt] * len(settings), list(settings.values()))
    print(f"\n> {prompt} …")
    for name, output in zip(settings, outputs, strict=True):
        print(f"  {name}: {output.text!r}")


def cost(llm: LLM) -> None:
    print(tr("\n文本长度   ms/token", "\n  length   ms/token"))
    one = SamplingParams(max_tokens=1)
    for length in (16, 64, 256, 1024):
        llm.generate([0] * length, one)  # the first pass of a length also pays for its memory
        start = time.perf_counter()
        llm.generate([0] * length, one)
        print(f"{length:>8}{measured(1000 * (time.perf_counter() - start)):>11}")


torch.set_num_threads(2)
with LLM(model_dir()) as llm:
    compare(llm, "The capital of France is")
    running_example(llm)
    sampling(llm)
    cost(llm)
