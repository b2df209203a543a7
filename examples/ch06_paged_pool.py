"""Chapter 6: the memory of four rows, drawn as rows and as pages; then 20 questions ask for it."""

import _step

import torch

from minisgl.core import Req, SamplingParams
from minisgl.kvcache.manager import CacheManager
from minisgl.llm import LLM
from minisgl.scheduler.request import Request
from minisgl.scheduler.table import TableManager

NUM_ROWS, MAX_SEQ_LEN, PAGE_SIZE = 4, 256, 16
NUM_PAGES = NUM_ROWS * MAX_SEQ_LEN // PAGE_SIZE
LENGTHS = [24, 100, 40, 180, 16, 60, 33, 90, 20, 12, 50, 150, 17, 70, 28]  # most texts are short
NAMES = (
    "France Japan Egypt Italy Spain Chile India Cuba Peru Iran Iraq Syria Laos Oman Kenya Mali "
    "Qatar Nepal Ghana Haiti"
)
torch.set_num_threads(1)

table = TableManager(torch.zeros(32, MAX_SEQ_LEN, dtype=torch.int32))
pages = CacheManager(NUM_PAGES, PAGE_SIZE, table.page_table)
running: dict[str, Req] = {}


def admit(name: str, length: int) -> None:
    """A prompt of `length` tokens, and one of output, which needs no place."""
    table_idx = table.allocate()
    handle = pages.reserve(table_idx, length)
    assert handle is not None
    prompt = torch.zeros(length, dtype=torch.int32)
    running[name] = Req(prompt, table_idx, 0, 1, 0, SamplingParams(), handle)


def finish(name: str) -> None:
    req = running.pop(name)
    pages.free(req)
    table.free(req.table_idx)


def show(zh: str, en: str) -> None:
    """A letter for each page, its owner's; a dot where it is free."""
    squares = ["·"] * NUM_PAGES
    for name, req in running.items():
        for page in req.cache_handle.pages:
            squares[page] = name
    print(f"  {''.join(squares)}  {_step.tr(zh, en)}")


def used(lengths: list[int]) -> str:
    return f"{100 * sum(lengths) / (NUM_PAGES * PAGE_SIZE):.0f} %"


print(
    _step.tr("连续：每个请求预留一整行，一格 16 个", "contiguous: a row each, in squares of 16"),
    "token",
)
for name, length in zip("abcd", LENGTHS, strict=False):
    print(" ", (name * -(-length // PAGE_SIZE)).ljust(MAX_SEQ_LEN // PAGE_SIZE, "-"))
share = used(LENGTHS[:NUM_ROWS])
print(_step.tr(f"  {NUM_ROWS} 个请求，用到 {share}", f"  {NUM_ROWS} requests, {share} used"))

print(_step.tr("\n分页：同样的内存，按需要给", "\npaged: the same memory, by need"))
for name, length in zip("abcdefghijklmno", LENGTHS, strict=True):
    admit(name, length)
show(f"15 个请求，用到 {used(LENGTHS)}", f"15 requests, {used(LENGTHS)} used")
for name in "beh":
    finish(name)
show("b、e、h 结束", "b, e and h are done")
admit("P", 6 * PAGE_SIZE)
show("P 要 6 页：最后还回来的 6 页", "P needs 6: the 6 that came back last")
admit("Q", 8 * PAGE_SIZE)
show("Q 要 8 页：没有连着的 8 页，照样放得下", "Q needs 8: no 8 lie together, and it fits")

llm = LLM(_step.model_dir(), page_size=PAGE_SIZE, num_pages=NUM_PAGES, max_seq_len=MAX_SEQ_LEN)
waiting = []
for uid, name in enumerate(NAMES.split()):
    ids = llm.tokenizer(f"The capital of {name} is")["input_ids"]
    waiting.append(Request(uid, ids, 50, SamplingParams(max_tokens=50, ignore_eos=True)))
    llm.scheduler.add(waiting[-1])
need = -(-(len(waiting[0].input_ids) + 50 - 1) // PAGE_SIZE)
zh = f"\n{len(waiting)} 个提问，每个要 {need} 页，一共只有 {NUM_PAGES} 页："
en = f"\n{len(waiting)} questions of {need} pages each, {NUM_PAGES} pages in all:"
print(_step.tr(zh, en))
while waiting:
    llm.scheduler.step()
    llm.scheduler.step()
    batch = [request for request in waiting if request.token_ids]
    texts = [llm.tokenizer.decode(one.input_ids[-2:] + one.token_ids) for one in batch]
    print(_step.tr(f"一个 batch，{len(batch)} 个：", f"a batch of {len(batch)}:") + ",".join(texts))
    waiting = waiting[len(batch) :]
    for request in batch:  # two tokens are enough to see; the pages go to the next batch
        llm.scheduler.abort(request.uid)
