"""Calls attend on keys and values that lie in a larger cache, and looks whether that changed.

Two things that a CPU lets pass and a GPU does not are refused here too.
"""

import functools

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

torch_attention = F.scaled_dot_product_attention


@functools.wraps(torch_attention)
def strict(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **options):
    if attn_mask is not None and is_causal:
        raise RuntimeError("attn_mask and is_causal=True exclude each other")
    return torch_attention(query, key, value, attn_mask, dropout_p, is_causal, **options)


F.scaled_dot_product_attention = strict

from minisgl.layers.attention import attend  # noqa: E402


class NoDefaultDevice(TorchFunctionMode):
    """Refuses to make a tensor on the device that torch would choose."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if kwargs.get("device") is None and function in _device_constructors():
            name = function.__name__
            raise RuntimeError(f"torch.{name} without a device: it need not be where q is")
        return function(*args, **kwargs)


def cached(tensor):
    """A cache whose other locations hold no numbers, and the stretch of it that holds these."""
    cache = torch.full((len(tensor) + 4, *tensor.shape[1:]), float("nan"))
    span = cache[2 : 2 + len(tensor)]
    span.copy_(tensor)
    return span


def run(ops):
    results = []
    for _, q, k, v in ops:
        own, keys, values = q.clone(), cached(k), cached(v)
        with NoDefaultDevice():
            out = attend(own, keys, values)
        kept = torch.equal(own, q) and torch.equal(keys, k) and torch.equal(values, v)
        results.append({"out": out.contiguous(), "inputs_kept": kept})
    return results
