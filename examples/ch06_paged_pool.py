"""Chapter 6: the memory of four rows, drawn as rows and as pages; then 16 streams at once in it."""

import _step

import torch

from minisgl.core import Req, SamplingParams
from minisgl.kvcache.manager import CacheManager
from minisgl.llm import LLM
from minisgl.scheduler.table import TableManager

NUM_ROWS, MAX_SEQ_LEN, PAGE_SIZE = 4, 256, 16
NUM_PAGES = NUM_ROWS * MAX_SEQ_LEN // PAGE_SIZE
LENGTHS = [24, 100, 40, 180, 16, 60, 33, 90, 20, 12, 50, 150, 17, 70, 28]  # most texts are short
NAMES = "France Japan Egypt Italy Spain Chile India Cuba Peru Iran Iraq Syria Laos Oman Kenya Mali"
torch.set_num_threads(1)

table = TableManager(torch.zeros(32, MAX_SEQ_LEN, dtype=torch.int32))
pages = CacheManager(NUM_PAGES, PAGE_SIZE, table.page_table)
running: dict[str, Req] = {}


def admit(name: str, length: int) -> None:
    prompt = torch.zeros(length - 1, dtype=torch.int32)
    running[name] = Req(prompt, table.allocate(), 0, 1, 0, SamplingParams(), None)
    pages.allocate(running[name])


def finish(name: str) -> None:
    req = running.pop(name)
    pages.free(req)
    table.free(req.table_idx)


def show(zh: str, en: str) -> None:
    """A letter for each page, its owner's; a dot where it is free."""
    squares = ["·"] * NUM_PAGES
    for name, req in running.items():
        for location in table.page_table[req.table_idx, : req.max_device_len].tolist():
            squares[location // PAGE_SIZE] = name
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
show("P 要 6 页：有正好的一段", "P needs 6: there is a run of just that")
admit("Q", 8 * PAGE_SIZE)
show("Q 要 8 页：没有这么长的一段，照样放得下", "Q needs 8: no run is that long, and it still fits")

llm = LLM(_step.model_dir(), page_size=PAGE_SIZE, num_pages=NUM_PAGES, max_seq_len=MAX_SEQ_LEN)
params = SamplingParams(max_tokens=50, ignore_eos=True)
names = NAMES.split()
streams = [llm.stream(f"The capital of {name} is", params) for name in names]
answers = [next(stream).text for stream in streams]
for number, stream in enumerate(streams):  # all are open, and take turns
    answers[number] += next(stream).text
print(_step.tr(f"\n{len(names)} 个流同时打开：", f"\n{len(names)} streams are open at once:"))
print(" ", ", ".join(name + text for name, text in zip(names, answers, strict=True)))
try:
    llm.generate("The capital of Cuba is", params)
except RuntimeError as error:
    print(_step.tr("再来一个：", "one more:"), error)
