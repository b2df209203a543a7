"""Chapter 5: what each round computes with and without a KV cache, and the KV nobody needs."""

import _step

import math
import time

import torch
from torch.utils.flop_counter import FlopCounterMode

from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.sample import SamplingArgs
from minisgl.llm import LLM

QUESTION = [{"role": "user", "content": "请解释什么是 KV Cache？"}]
MAX_NEW_TOKENS = 8
torch.set_num_threads(1)
llm = LLM(_step.model_dir(), max_seq_len=1024)
engine, cache = llm.engine, llm.engine.ctx.kv_cache
params = SamplingParams(max_tokens=MAX_NEW_TOKENS)
encoded = llm.tokenizer.apply_chat_template(QUESTION, add_generation_prompt=True)
prompt = torch.tensor(encoded["input_ids"], dtype=torch.int32)


def forward(req: Req) -> torch.Tensor:
    """Compute the tokens of `req` that have no KV yet, and choose the next one."""
    batch = Batch([req], "decode" if req.extend_len == 1 else "prefill")
    batch.positions = torch.arange(req.cached_len, req.device_len)
    batch.input_ids = req.input_ids[batch.positions]
    batch.out_loc = batch.positions + cache.span(req.table_idx, req.device_len).start
    batch.logits_rows = torch.tensor([req.extend_len - 1])
    batch.sampling_args = SamplingArgs([params], [torch.Generator()])
    return engine.forward_batch(batch).next_tokens


def answer(keep: bool) -> tuple[list[int], list[tuple[int, float, float]]]:
    """The tokens and, per round, tokens computed, GFLOP and ms; `keep` is what the cache is for."""
    req = Req(prompt, 0, 0, MAX_NEW_TOKENS, 0, params, None)
    rounds = []
    while len(req.input_ids) < req.max_device_len:
        with FlopCounterMode(display=False) as counter:
            forward(req)
        start = time.perf_counter()
        token = forward(req)  # once more, since counting takes time
        milliseconds = 1000 * (time.perf_counter() - start)
        rounds.append((req.extend_len, counter.get_total_flops() / 1e9, milliseconds))
        req.complete_one()
        req.append_host(token)
        if not keep:
            req.cached_len = 0  # as if nothing had been computed before
    return req.input_ids.tolist(), rounds


forget_ids, forget = answer(keep=False)
cache.k_cache(0).fill_(math.nan)  # what is written from here on can be told from the rest
keep_ids, keep = answer(keep=True)
written = (~cache.k_cache(0).isnan()).any(dim=(1, 2)).nonzero().flatten().tolist()
new_ids = keep_ids[len(prompt) :]

print(_step.tr("提示词", "prompt"), f"({len(prompt)} tokens):", QUESTION[0]["content"])
print(_step.tr("回答", "answer"), f"({len(new_ids)} tokens):", repr(llm.tokenizer.decode(new_ids)))
same = forget_ids == keep_ids and new_ids == llm.chat(QUESTION, params).token_ids
print(_step.tr("有没有 KV Cache，结果都一样：", "the same with and without the cache:"), same)

print(_step.tr("\n        全部重算", "\n        all again"), " " * 20, "KV cache")
print("round   extend_len  GFLOP     ms    extend_len  GFLOP     ms")
for number, columns in enumerate(zip(forget, keep, strict=True), 1):
    cells = [f"{n:10}  {gflop:5.2f} {_step.measured(ms, '.0f'):>6}" for n, gflop, ms in columns]
    print(f"{number:5}  ", "    ".join(cells))
gflop, tpot = ([sum(row[i] for row in rows[1:]) / 7 for rows in (forget, keep)] for i in (1, 2))
print(
    _step.tr("每个 decode 的计算量：", "compute per decode:"),
    "{:.2f} → {:.2f} GFLOP".format(*gflop),
)
print("TPOT:", " → ".join(_step.measured(ms, ".0f") for ms in tpot), "ms")

print(_step.tr("\n有 KV 的位置：", "\npositions with KV:"), f"{written[0]} … {written[-1]}")
print(
    _step.tr("从未计算 KV 的那个 token，位置：", "the one token whose KV is never computed, at:"),
    len(keep_ids) - 1,
)
used = len(written) * cache.num_bytes // len(cache.k_cache(0))
print(
    _step.tr("预留", "reserved"),
    f"{cache.num_bytes / 1e6:.1f} MB,",
    _step.tr("用到", "used"),
    f"{used / 1e6:.1f} MB",
)
