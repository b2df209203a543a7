"""Chapter 3: every weight of the real model in its place, and what the model then says."""

import _step

import math
import threading
import time
from pathlib import Path

import torch
from transformers import AutoConfig

from minisgl.core import Batch, Context, Req, SamplingParams, set_global_ctx
from minisgl.models.folder import resolve_model
from minisgl.models.weight import load_model
from minisgl.tokenizer.load import eos_token_ids, load_tokenizer

PROMPTS = ["The capital of France is", "请解释什么是 KV Cache？"]
torch.set_num_threads(2)


def own_memory() -> float:
    """MB of this process, pages of mapped files not counted; nan on systems that do not tell."""
    status = Path("/proc/self/status")
    text = status.read_text() if status.exists() else "RssAnon: nan"
    return float(text.partition("RssAnon:")[2].split()[0]) * 1024 / 1e6


def watch(samples: list[float], done: threading.Event) -> None:
    while not done.wait(0.001):
        samples.append(own_memory())


folder = resolve_model(_step.model_dir())  # a name of the hub would do as well
AutoConfig.from_pretrained(folder)  # transformers imports half of itself at the first call
samples, done = [own_memory()], threading.Event()
watcher = threading.Thread(target=watch, args=(samples, done), daemon=True)
watcher.start()
start = time.perf_counter()
model, config = load_model(folder, torch.float32, "cpu")
seconds = time.perf_counter() - start
done.set()
watcher.join()

print(_step.tr("模型文件夹里写着：", "the folder says of itself:"))
for key in ("num_layers", "num_qo_heads", "num_kv_heads", "head_dim", "rotary", "qk_norm"):
    print(f"  {key:<14}{getattr(config, key)}")

slots = {name: layer.parts()[part] for name, layer, part in model.slots()}
print(_step.tr(f"\n{len(slots)} 个权重各有其位：", f"\na place for each of {len(slots)} weights:"))
for name, shape in slots.items():
    if name.startswith(("model.embed", "model.layers.29.", "model.norm")):
        print(f"  {name:<50}{list(shape)}")

total, largest = (f(s.numel() * 4 / 1e6 for s in slots.values()) for f in (sum, max))
peak = max(samples) - samples[0]
within = math.isnan(peak) or peak <= total + largest + 32
print(_step.tr("\n加载用时", "\nloaded in"), _step.measured(seconds, ".2f"), "s")
print(_step.tr("权重", "weights"), f"{total:.1f} MB,", end=" ")
print(_step.tr("内存峰值", "peak memory"), _step.measured(peak), "MB,", end=" ")
print(_step.tr("峰值 ≤ 权重 + 最大张量 + 32：", "peak ≤ weights + largest + 32:"), within)

tokenizer = load_tokenizer(folder)
ends = [tokenizer.decode(token) for token in sorted(eos_token_ids(folder, tokenizer))]
print(_step.tr("\n一次回答到这里为止：", "\nan answer ends with"), *ends)
set_global_ctx(ctx := Context(page_size=1))
for prompt in PROMPTS:
    ids = torch.tensor(tokenizer(prompt)["input_ids"], dtype=torch.int32)
    batch = Batch([Req(ids, 0, 0, 1, 0, SamplingParams(), None)], "prefill")
    batch.input_ids, batch.positions = ids, torch.arange(len(ids))
    with ctx.forward_batch(batch), torch.inference_mode():
        logits = model.forward()[0]  # [vocab_size]: a score for each token that may come next
    best = logits.softmax(0).topk(4)
    print(f"\n{prompt}")
    for token, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True):
        print(f"  {tokenizer.decode(token)!r:<10}{_step.measured(100 * probability):>6} %")
