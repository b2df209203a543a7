"""Chapter 3: what the real model costs until its first logits are there: seconds and memory.

Beside ours stands transformers, which in the checkpoint's own type copies nothing: its weights
stay pages of the mapped file, and the first forward pass reads them. Ours are copied to where the
merged layers want them. So that both have read everything, a forward pass of one token is part of
the figure. The file is in the page cache, and all imports are done.
"""

import gc
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from _bench import StepProcess, alternate, record


def setup_engine() -> Any:
    from _step import model_dir

    import torch
    from transformers import AutoConfig

    from minisgl.core import Batch, Context, Req, SamplingParams, set_global_ctx
    from minisgl.models.weight import load_model

    torch.set_grad_enabled(False)
    AutoConfig.from_pretrained(model_dir())  # transformers imports half of itself at the first call
    set_global_ctx(ctx := Context(page_size=1))
    no_handle: Any = None
    ids = torch.zeros(1, dtype=torch.int32)
    batch = Batch([Req(ids, 0, 0, 1, 0, SamplingParams(), no_handle)], "prefill")
    batch.input_ids, batch.positions = ids, torch.arange(1)

    def load(dtype: str) -> Any:
        model, _ = load_model(model_dir(), getattr(torch, dtype), torch.device("cpu"))
        with ctx.forward_batch(batch):
            model.forward()
        return model

    return load


def setup_peer() -> Any:
    from _step import model_dir

    import torch
    from transformers import AutoModelForCausalLM, LlamaForCausalLM
    from transformers.utils import logging

    torch.set_grad_enabled(False)
    logging.disable_progress_bar()
    assert LlamaForCausalLM  # the import itself is lazy

    def load(dtype: str) -> Any:
        model = AutoModelForCausalLM.from_pretrained(model_dir(), dtype=getattr(torch, dtype))
        model(torch.zeros(1, 1, dtype=torch.long), use_cache=False)
        return model

    return load


def seconds(load: Any, dtype: str) -> float:
    start = time.perf_counter()
    model = load(dtype)
    end = time.perf_counter()
    del model
    gc.collect()
    return end - start


def own_memory() -> float:
    """MB of this process, without the pages of mapped files."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024 / 1e6


def peak_mb(load: Any, dtype: str) -> float:
    """How far the memory rises in the first load of a process: a later one finds freed memory."""
    samples, done = [own_memory()], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            samples.append(own_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        load(dtype)
    finally:
        done.set()
        watcher.join()
    return max(samples) - samples[0]


def weights_mb(load: Any, dtype: str) -> float:
    layers = {id(layer): layer for _, layer, _ in load(dtype).slots()}.values()
    return sum(tensor.nbytes for layer in layers for tensor in layer.weights().values()) / 1e6


def main() -> None:
    rows = []
    for dtype in ("float32", "bfloat16"):
        with StepProcess(3, setup_engine) as ours, StepProcess(None, setup_peer) as peer:
            peaks = ours(peak_mb, dtype), peer(peak_mb, dtype)
            pair = alternate(partial(ours, seconds, dtype), partial(peer, seconds, dtype))
            rows.append(
                {
                    "dtype": dtype,
                    "weights_mb": ours(weights_mb, dtype),
                    "peak_mb": peaks[0],
                    "transformers_peak_mb": peaks[1],
                    "seconds": pair.a,
                    "transformers_seconds": pair.b,
                    "ratio": pair.ratio,
                    "spread": pair.spread,
                }
            )
    record(
        "ch03_load",
        "loading the real model from the page cache up to the logits of one token, by ours and by "
        "transformers: the peak of memory beyond mapped files above where it was before, in MB, "
        "and seconds, medians of 5 pairs",
        rows,
    )


if __name__ == "__main__":
    main()
