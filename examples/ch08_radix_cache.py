"""Chapter 8: the tree of prefixes while requests come and go, and what a hit saves."""

import _step

import time

import torch

from minisgl.core import Req, SamplingParams
from minisgl.kvcache.manager import CacheManager
from minisgl.kvcache.radix_tree import RadixNode
from minisgl.llm import LLM

torch.set_num_threads(1)
page_table = torch.zeros(3, 32, dtype=torch.int32)
cache, free_rows = CacheManager(num_pages=9, page_size=2, page_table=page_table), [2, 1, 0]
vocabulary: list[str] = []  # a word's token id is its place in this list


def encode(words: list[str]) -> torch.Tensor:
    vocabulary.extend(word for word in words if word not in vocabulary)
    return torch.tensor([vocabulary.index(word) for word in words], dtype=torch.int32)


def come(prompt: str, answer: str) -> tuple[Req, list[str]]:
    """Admit a request and prefill it; no model is needed, since the cache looks into no KV."""
    ids, rest, row = encode(prompt.split()), answer.split(), free_rows.pop()
    handle = cache.reserve(row, ids.tolist(), len(ids) + len(rest) - 1)
    assert handle is not None  # there is room
    req = Req(ids, row, handle.cached_len, len(rest), 0, SamplingParams(), handle)
    req.complete_one()
    req.append_host(encode([rest.pop(0)]))
    cache.cache_req(req)
    draw(f"+ {prompt!r} {_step.tr('命中', 'hits')} {handle.cached_len}/{len(ids)}", req)
    return req, rest


def go(req: Req, rest: list[str]) -> None:
    """Let a request have the rest of its answer, and end."""
    for word in rest:
        req.complete_one()
        req.append_host(encode([word]))
    cache.free(req)
    free_rows.append(req.table_idx)
    draw(f"- {' '.join(vocabulary[token] for token in req.input_ids)!r}")


def draw(event: str, req: Req | None = None) -> None:
    """What the cache keeps to itself: the tree, and the pages that are nobody's."""
    print(f"\n{event}")
    if req is not None:
        print(f"   {_step.tr('它的页', 'its pages')} {req.cache_handle.pages}")
    depth: dict[RadixNode | None, int] = {}
    for node in cache._tree.nodes():
        depth[node] = depth.get(node.parent, 0) + 1
        text = " ".join(vocabulary[token] for key in node.keys for token in key)
        pages, locks = _step.tr("页", "pages"), "*" * node.lock_count
        print(f"{'   ' * depth[node]}└─ {text!r} {pages} {node.pages} {locks}".rstrip())
    print(f"   {_step.tr('空闲页', 'free pages')} {cache._allocator.free_pages()}")


print(_step.tr("每页 2 个词，* 是一把锁：", "two words to a page, each * is a lock:"))
one = come("you are a poet write a poem", "roses are red")
two = come("you are a nurse say hello", "hello dear")  # splits what the first one is reading
go(*one)  # its answer stays as well
go(*two)
three = come("what is one and two", "it is three")  # finds too little room: the oldest end goes
four = come("you are a poet sing", "la")
cache.check_invariants([three[0], four[0]])

print(_step.tr("\nSmolLM2，系统提示词相同：", "\nSmolLM2, with one system prompt:"))
system = {"role": "system", "content": "Answer the question in one short sentence. " * 40}
cached = total = 0
with LLM(_step.model_dir(), max_seq_len=512) as llm:
    llm.generate("Hello", SamplingParams(max_tokens=1))  # the first pass also pays for its memory
    for question in ("What is the capital of France?", "Name three colors.", "Name three colors."):
        start = time.perf_counter()
        messages = [system, {"role": "user", "content": question}]
        output = llm.chat(messages, SamplingParams(max_tokens=1))
        ttft = 1000 * (time.perf_counter() - start)
        cached, total = cached + output.num_cached_tokens, total + output.num_prompt_tokens
        hits = (
            f"{_step.tr('命中', 'hits')} {output.num_cached_tokens:>3}/{output.num_prompt_tokens}"
        )
        print(f"  {question:<32}{hits}  TTFT {_step.measured(ttft, '.0f')} ms")
print(_step.tr("命中率", "hit rate"), f"{100 * cached / total:.0f} %")
