"""Asks for thresholds, and watches how many probabilities are put in order for them.

What leaves the tensor could be sorted anywhere, so that counts like a sort.
"""

import contextlib

import torch
from torch.overrides import TorchFunctionMode

from minisgl.engine.sample import top_p_threshold

SORTING = ("sort", "argsort", "msort", "unique")
HANDED_OUT = ("tolist", "numpy", "__array__", "__dlpack__")
CANDIDATES = 256


class Sorts(TorchFunctionMode):
    """How many entries were put in order or handed out, all calls together."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.__name__
        tensor = args[0] if args else kwargs.get("input")
        if name in (*SORTING, *HANDED_OUT):
            self.count += tensor.numel()
        elif name in ("__iter__", "unbind") and tensor.dim() == 1:
            self.count += len(tensor)
        elif name == "topk":
            k = args[1] if len(args) > 1 else kwargs["k"]
            self.count += k * tensor.numel() // tensor.shape[-1]
        return func(*args, **kwargs)


def kept(probs, threshold, listed):
    rows = [(row >= one).nonzero()[:, 0] for row, one in zip(probs, threshold, strict=True)]
    return [row.tolist() if listed else len(row) for row in rows]


def threshold(probs, top_p, listed, watch=None):
    own, shares = probs.clone(), torch.tensor(top_p, dtype=torch.float64)[:, None]
    with watch or contextlib.nullcontext():
        found = top_p_threshold(own, shares)
    same = torch.equal(own, probs) and shares[:, 0].tolist() == top_p
    return {"threshold": found, "kept": kept(probs, found, listed), "inputs_kept": same}


def watched(probs, top_p, listed):
    sorts = Sorts()
    result = threshold(probs, top_p, listed, sorts)
    num_rows, vocab_size = probs.shape
    filtered = zip(kept(probs, result["threshold"], False), top_p, strict=True)
    flat = sum(count > CANDIDATES and p < 1 for count, p in filtered)
    allowed = num_rows * vocab_size // 4 + 2 * flat * vocab_size
    return result | {"sorts_too_much": sorts.count > allowed}


def run(ops):
    return [{"threshold": threshold, "watched": watched}[name](*rest) for name, *rest in ops]
