"""Asks for thresholds, and watches how much of a vocabulary is sorted for them."""

import torch
from torch.overrides import TorchFunctionMode

from minisgl.engine.sample import top_p_threshold


class Sorts(TorchFunctionMode):
    """The largest number of entries that one call has put in order."""

    def __init__(self):
        super().__init__()
        self.most = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.__name__
        if name in ("sort", "argsort", "msort"):
            self.most = max(self.most, args[0].numel())
        elif name == "topk":
            self.most = max(self.most, args[1] if len(args) > 1 else kwargs["k"])
        return func(*args, **kwargs)


def kept(probs, threshold, listed):
    rows = [(row >= one).nonzero()[:, 0] for row, one in zip(probs, threshold, strict=True)]
    return [row.tolist() if listed else len(row) for row in rows]


def threshold(probs, top_p, listed):
    found = top_p_threshold(probs, torch.tensor(top_p, dtype=torch.float64)[:, None])
    return {"threshold": found, "kept": kept(probs, found, listed)}


def watched(probs, top_p, listed):
    with Sorts() as sorts:
        result = threshold(probs, top_p, listed)
    return result | {"sorts_the_vocabulary": sorts.most > probs.shape[1] // 4}


def run(ops):
    return [{"threshold": threshold, "watched": watched}[name](*rest) for name, *rest in ops]
