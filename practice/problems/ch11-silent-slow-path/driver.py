"""Stands in for the operators of oneDNN and MKL, and notes which weight each product has read."""

from functools import partial
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from minisgl.layers import layout

read, packed_times = [], []


class Packed:
    """A packed weight: only its own operator can read it."""

    def __init__(self, kind, weight):
        assert isinstance(weight, torch.Tensor), f"{kind} packs a tensor"
        packed_times.append(kind)
        self.kind, self.content = kind, weight.clone()


def multiply(what, x, weight, bias=None):
    read.append(what)
    return F.linear(x, weight, bias)


def mkl_pack(weight, rows):
    assert type(rows) is int and rows > 0, "MKL packs for a number of rows"
    return Packed("MKL", weight)


def mkl_linear(x, packed, weight, bias, rows):
    assert isinstance(packed, Packed) and packed.kind == "MKL", "MKL reads what it has packed"
    if rows == len(x):
        return multiply("packed", x, packed.content, bias)
    return multiply("plain", x, weight, bias)


def onednn_pack(weight, rows=None):
    return Packed("oneDNN", weight)


def onednn_linear(x, packed, bias, attr, scalars, algorithm):
    assert isinstance(packed, Packed) and packed.kind == "oneDNN", "oneDNN reads what it has packed"
    assert (attr, scalars, algorithm) == ("none", [], ""), "nothing is fused with the product"
    return multiply("packed", x, packed.content, bias)


class Torch:
    """torch, but for these operators."""

    ops = SimpleNamespace(
        mkl=SimpleNamespace(_mkl_reorder_linear_weight=mkl_pack, _mkl_linear=mkl_linear),
        mkldnn=SimpleNamespace(_reorder_linear_weight=onednn_pack, _linear_pointwise=onednn_linear),
    )

    def __getattr__(self, name):
        return getattr(torch, name)


def numbers(seed, *shape):
    """Small whole numbers: their products are exact in any order."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-4, 5, shape, generator=generator).float()


def use(name, flags, seed, shape, counts, with_bias, forgets):
    """Products of one weight with several inputs: in one layout, or as a choice says by `flags`.

    `forgets` spoils the caller's own tensor.
    """
    read.clear()
    packed_times.clear()
    weight = numbers(seed, *shape)
    original, bias = weight.clone(), numbers(seed + 1, shape[0]) if with_bias else None
    make = layout.Choice(name, tuple(flags)).apply if flags else layout.LAYOUTS[name]
    product = make(weight)
    prepared = len(packed_times)
    if forgets:
        weight.fill_(100.0)
    right = []
    for number, count in enumerate(counts):
        x = numbers(seed + 2 + number, count, shape[1])
        right.append(torch.equal(product(x, bias), F.linear(x, original, bias)))
    later = len(packed_times) - prepared
    return {"right": right, "read": list(read), "packed": [prepared, later]}


def run(ops):
    layout.torch = Torch()
    layout.F = SimpleNamespace(linear=partial(multiply, "plain"))
    return [use(*values) for values in ops]
