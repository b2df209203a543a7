"""Chapter 11: the same weights in another layout, and a batch pays.

A weight of the model is multiplied in each layout, by one row and by many; a packed operator is
caught computing the plain way; then the model answers 1, 8 and 32 requests with its weights as the
checkpoint has them, and as they are fastest here.
"""

from _step import measured, model_dir, tr

import time
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F

from minisgl import LLM, SamplingParams
from minisgl.layers.layout import LAYOUTS, ROW_COUNTS, measure

STEPS = 8
SIZES = (1, 8, 32)


def one_weight(llm: LLM) -> None:
    weights = [layer.mlp.gate_up_proj.matrix for layer in llm.engine.model.model.layers]
    rows, columns = weights[0].shape
    print(tr(f"{columns} → {rows}，ms：", f"{columns} → {rows}, ms:"))
    print(tr("  行数      ", "  rows      "), "".join(f"{count:>8}" for count in ROW_COUNTS))
    times = measure(weights)
    for name in LAYOUTS:
        cells = [measured(1000 * one, ".2f") for one in times.get(name, [])]
        print(f"  {name:<11}", "".join(f"{cell:>8}" for cell in cells or ["≈-"] * len(ROW_COUNTS)))


def the_trap(weight: torch.Tensor) -> None:
    """A weight of zeros is given as the plain one, so a result of zeros says which was read."""
    print(tr("\nMKL 打包的算子，来了 8 行：", "\nthe operator packed by MKL gets 8 rows:"))
    for told in (8, 16):
        read = "-"  # on a machine without MKL
        if torch.backends.mkl.is_available():
            ops, x = torch.ops.mkl, torch.ones(8, weight.shape[1])
            packed = ops._mkl_reorder_linear_weight(weight, 16)
            result = ops._mkl_linear(x, packed, torch.zeros_like(weight), None, told)
            read = (
                tr("打包的", "packed") if torch.allclose(result, F.linear(x, weight)) else "plain"
            )
        zh, en = f"告诉它 {told:>2} 行，读的是", f"told {told:>2} rows, it reads"
        print(f"  {tr(zh, en)} ≈{read}")


def what_was_chosen(llm: LLM) -> None:
    print(tr("\n这台机器上的选择：", "\nchosen on this machine:"))
    print(tr("  行数            ", "  rows            "), "".join(f"{n:>12}" for n in ROW_COUNTS))
    for shape, choice in llm.engine.layouts.items():
        cells = [f"≈{choice.second if use else 'plain'}" for use in choice.uses_second]
        print(f"  {shape.partition(',')[0]:<16}", "".join(f"{cell:>12}" for cell in cells))


def decode(llm: LLM, size: int) -> tuple[float, list[list[int]]]:
    """Milliseconds of a decode step with `size` rows, and what the requests are answered."""
    forward_batch, seconds = llm.engine.forward_batch, []

    def timed(batch: Any) -> Any:
        start = time.perf_counter()
        output = forward_batch(batch)
        if batch.is_decode:
            seconds.append(time.perf_counter() - start)
        return output

    llm.engine.forward_batch = timed
    prompts = [f"{n}, {n + 1}, {n + 2}," for n in range(1, size + 1)]
    outputs = llm.generate(prompts, SamplingParams(max_tokens=STEPS + 1, ignore_eos=True))
    llm.engine.forward_batch = forward_batch
    return 1000 * median(seconds), [output.token_ids for output in outputs]


def before_and_after(plain: LLM, fast: LLM) -> None:
    print(tr("\n一步 decode，ms：", "\na decode step, ms:"))
    print(tr("  行数   plain    选出的  token 相同", "  rows   plain   chosen  same tokens"))
    for size in SIZES:
        (before, expected), (after, tokens) = decode(plain, size), decode(fast, size)
        cells = f"{measured(before, '.0f'):>8}{measured(after, '.0f'):>9}"
        print(f"  {size:>4}{cells}  {tokens == expected}")


torch.set_num_threads(2)
with LLM(model_dir(), max_seq_len=64, weight_layout="plain") as plain:
    one_weight(plain)
    the_trap(plain.engine.model.lm_head.matrix[:1000])
    with LLM(model_dir(), max_seq_len=64) as fast:
        what_was_chosen(fast)
        before_and_after(plain, fast)
