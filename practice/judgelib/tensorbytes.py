"""Tensors as raw bytes and back, in the byte order of the machine (both ends are on one machine).

torch is imported only where a tensor comes by: a judge of plain Python never loads it.
"""

import ctypes
import math
from typing import Any

from practice.judgelib.values import INT_BOUND, FrameError

# dtype name -> bytes of one element
ITEM_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}
MAX_DIMS = 16
MAX_SIZE = 2**31


def describe(tensor: Any) -> list[Any]:
    """Return `[dtype, shape, nbytes]` of a plain CPU tensor; raises FrameError for other tensors.

    Says it before a byte is copied: an expanded tensor can be far larger than its storage.
    """
    import torch

    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        raise FrameError(f"a tensor that is {tensor.layout} on {tensor.device}: want strided, cpu")
    if dtype not in ITEM_BYTES:
        raise FrameError(f"a tensor of dtype {dtype}")
    shape = list(tensor.shape)
    nbytes = math.prod(shape) * ITEM_BYTES[dtype]
    _check(dtype, shape, nbytes)
    return [dtype, shape, nbytes]


def to_bytes(tensor: Any, nbytes: int) -> bytes:
    """Return the elements of `tensor` in row-major order."""
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return ctypes.string_at(flat.data_ptr(), nbytes) if nbytes else b""


def check_description(entry: Any) -> int:
    """Return the bytes that a received `[dtype, shape, nbytes]` announces, once it makes sense."""
    if type(entry) is not list or len(entry) != 3:
        raise FrameError("a tensor entry that is not [dtype, shape, nbytes]")
    _check(*entry)
    return entry[2]


def from_bytes(entry: list[Any], data: bytearray) -> Any:
    """Return the tensor of a checked entry; it owns `data`."""
    import torch

    name, shape, nbytes = entry
    dtype = getattr(torch, name)
    if nbytes == 0:
        return torch.empty(shape, dtype=dtype)
    if name == "bool":
        # Any other byte is a "true" that differs from true.
        raw = torch.frombuffer(data, dtype=torch.uint8)
        if int(raw.max()) > 1:
            raise FrameError("a bool tensor with bytes other than 0 and 1")
        return raw.to(torch.bool).reshape(shape)
    return torch.frombuffer(data, dtype=dtype).reshape(shape)


def _check(dtype: Any, shape: Any, nbytes: Any) -> None:
    if type(dtype) is not str or dtype not in ITEM_BYTES:
        raise FrameError("a tensor of unknown dtype")
    if type(shape) is not list or len(shape) > MAX_DIMS:
        raise FrameError(f"a tensor shape that is not a list of at most {MAX_DIMS} sizes")
    if any(type(size) is not int or not 0 <= size < MAX_SIZE for size in shape):
        raise FrameError("a tensor size that is negative or too large")
    # Where one size is 0, the steps of the others must fit into 64 bits all the same.
    if math.prod(size or 1 for size in shape) * ITEM_BYTES[dtype] >= INT_BOUND:
        raise FrameError("a tensor shape that is too large")
    if type(nbytes) is not int or nbytes != math.prod(shape) * ITEM_BYTES[dtype]:
        raise FrameError("a tensor whose bytes do not fit its shape")
