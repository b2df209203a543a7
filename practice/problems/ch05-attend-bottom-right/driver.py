"""Calls attend on keys and values that lie in a larger cache, and looks whether that changed.

Two things that a CPU lets pass and a GPU does not are refused here too.
"""

import functools

import torch
import torch.nn.functional as F

torch_attention = F.scaled_dot_product_attention


@functools.wraps(torch_attention)
def strict(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **options):
    if attn_mask is not None and is_causal:
        raise RuntimeError("attn_mask and is_causal=True exclude each other")
    return torch_attention(query, key, value, attn_mask, dropout_p, is_causal, **options)


F.scaled_dot_product_attention = strict

from minisgl.layers.attention import attend  # noqa: E402


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
        with torch.device("meta"):  # what is made with no device lands where nothing is
            out = attend(own, keys, values)
        kept = torch.equal(own, q) and torch.equal(keys, k) and torch.equal(values, v)
        results.append({"out": out.contiguous(), "inputs_kept": kept})
    return results
