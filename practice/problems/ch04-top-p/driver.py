"""Asks for thresholds, and watches how much of a vocabulary is sorted for them.

What leaves the tensor could be sorted anywhere, so that counts like a sort.
"""

import contextlib

import torch
from torch.overrides import TorchFunctionMode

from minisgl.engine.sample import top_p_threshold

HANDED_OUT = ("tolist", "numpy", "__array__", "__dlpack__")


class Sorts(TorchFunctionMode):
    """The largest number of entries that one call has put in order, or handed out."""

    def __init__(self):
        super().__init__()
        self.most = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.__name__
        if name in ("sort", "argsort", "msort", "unique", *HANDED_OUT):
            self.most = max(self.most, args[0].numel())
        elif name in ("__iter__", "unbind") and args[0].dim() == 1:
            self.most = max(self.most, len(args[0]))
        elif name == "topk":
            self.most = max(self.most, args[1] if len(args) > 1 else kwargs["k"])
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
    return result | {"sorts_the_vocabulary": sorts.most > probs.shape[1] // 4}


def run(ops):
    return [{"threshold": threshold, "watched": watched}[name](*rest) for name, *rest in ops]
