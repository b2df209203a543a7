"""Chapter 7: a prefill, a prefix hit and a decode in one batch, and what a batch is worth."""

import _step

import time

import torch

from minisgl.attention.torch_backend import TorchAttnBackend
from minisgl.core import Batch, Req, SamplingParams
from minisgl.kvcache import BaseCacheHandle
from minisgl.kvcache.pool import PagedKVPool
from minisgl.llm import LLM

PAGE_SIZE, HEADS, LONGEST = 2, 1, 16
REQUESTS = [  # (what it is, how many tokens are cached, how many are new, the pages it has)
    ("prefill", 0, 4, [0, 1]),
    (_step.tr("命中前缀", "prefix hit"), 4, 3, [7, 3, 5, 4]),
    ("decode", 6, 1, [8, 9, 10, 11]),
]
torch.set_num_threads(1)

pool = PagedKVPool(
    num_pages=12,
    page_size=PAGE_SIZE,
    num_layers=1,
    num_kv_heads=HEADS,
    head_dim=LONGEST,
    dtype=torch.float32,
    device=torch.device("cpu"),
)
page_table = torch.zeros(len(REQUESTS), LONGEST, dtype=torch.int32)
backend = TorchAttnBackend(pool, page_table, PAGE_SIZE)

# A value that is a one at the token's own position makes the output show who was looked at.
marks = torch.eye(LONGEST)[:, None]  # [position, head, head_dim]
reqs = []
for row, (_, cached_len, num_new, pages) in enumerate(REQUESTS):
    places = [page * PAGE_SIZE + i for page in pages for i in range(PAGE_SIZE)]
    page_table[row, : len(places)] = torch.tensor(places)
    ids = torch.zeros(cached_len + num_new, dtype=torch.int32)
    handle = BaseCacheHandle(pages)
    reqs.append(Req(ids, row, cached_len, 1, row, SamplingParams(), handle))
    past = marks[:cached_len]
    pool.store_kv(torch.zeros_like(past), past, page_table[row, :cached_len], layer_id=0)

batch = Batch(reqs, "prefill")
batch.positions = torch.cat([torch.arange(req.cached_len, req.device_len) for req in reqs])
rows = torch.tensor([req.table_idx for req in reqs for _ in range(req.extend_len)])
batch.out_loc = page_table[rows, batch.positions]
backend.prepare_metadata(batch)
metadata = batch.attn_metadata
print("cu_seqlens_q", metadata.cu_seqlens_q.tolist())
print("cu_seqlens_k", metadata.cu_seqlens_k.tolist())
print("positions   ", batch.positions.tolist())
print("out_loc     ", batch.out_loc.tolist())

values = marks[batch.positions]
zeros = torch.zeros(len(values), HEADS, LONGEST)
weights = backend.forward(zeros, zeros, values, 0, batch)[:, 0]  # [num_tokens, position]
print(
    _step.tr(
        "\n每一行看见自己请求的哪些位置：", "\nthe positions of its own request that a row sees:"
    )
)
for req, (name, *_), part in zip(reqs, REQUESTS, metadata.parts, strict=True):
    is_run = req.cache_handle.is_run
    how = _step.tr("原地读", "read in place") if is_run else _step.tr("先收集", "gathered")
    print(f"{name}: {page_table[req.table_idx, : req.device_len].tolist()} {how}")
    for row in range(part.rows.start, part.rows.stop):
        seen = "".join("■" if weight > 0 else "·" for weight in weights[row, : req.device_len])
        print(f"  {_step.tr('行', 'row')} {row}  {seen}")

print(_step.tr("\nSmolLM2，每个请求生成 16 个 token：", "\nSmolLM2, 16 tokens for each request:"))
params = SamplingParams(max_tokens=16, ignore_eos=True)
with LLM(_step.model_dir(), max_seq_len=64, num_pages=64) as llm:
    prompts = [f"{n} plus {n} is" for n in range(1, 17)]
    alone = llm.generate(prompts[0], params)[0].text
    for size in (1, 4, 16):
        start = time.perf_counter()
        outputs = llm.generate(prompts[:size], params)
        rate = size * 16 / (time.perf_counter() - start)
        print(
            f"batch {size:>2} {_step.measured(rate):>7} tokens/s,",
            _step.tr("第一个请求的回答不变：", "the first answer is the same:"),
            outputs[0].text == alone,
        )
