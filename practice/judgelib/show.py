"""Values as text for a verdict: whole where that helps, else what is small, and shapes."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterator
from typing import Any

WHOLE = 1500  # characters of a value that is shown whole
BRIEF = 200
MAX_KEYS, MAX_KEY = 20, 40  # of a dict whose types are shown
_LINES = textwrap.TextWrapper(
    88, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False
)


def is_tensor(value: Any) -> bool:
    """Whether it is exactly a torch.Tensor, without importing torch."""
    return type(value).__module__ == "torch" and type(value).__name__ == "Tensor"


def whole(value: Any, limit: int = WHOLE) -> str:
    """The value in full, with tensors as nested lists of few digits, cut at `limit`."""
    return "\n".join(_LINES.wrap(cut(_text(value, limit), limit)))


def brief(value: Any) -> str:
    """One line: the value itself when it is short, else what it is made of."""
    if is_tensor(value) and value.numel() > 8:
        return shape(value)
    text = _text(value, BRIEF)
    return text if len(text) <= BRIEF else shape(value)


def shape(value: Any) -> str:
    """Types, dtypes and sizes; of a dict the small values too."""
    if is_tensor(value):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if type(value) in (list, tuple):
        inner = f" of {shape(value[0])}" if value and type(value[0]) is type(value[-1]) else ""
        return f"{type(value).__name__}[{len(value)}]{inner}"
    if type(value) is dict:
        first = itertools.islice(value.items(), MAX_KEYS)
        parts = [f"{cut(repr(key), MAX_KEY)}: {_small(item)}" for key, item in first]
        parts += ["…"] if len(value) > MAX_KEYS else []
        return "{" + ", ".join(parts) + "}"
    return type(value).__name__


def _small(value: Any) -> str:
    text = "" if is_tensor(value) else _text(value, MAX_KEY)
    return text if text and len(text) <= MAX_KEY else shape(value)


def size(value: Any) -> int:
    """How large an input is, to find the smallest that fails: numbers, items and characters."""
    if is_tensor(value):
        return int(value.numel()) + 1
    if type(value) in (list, tuple):
        return 1 + sum(map(size, value))
    if type(value) is dict:
        return 1 + sum(size(item) for item in value.values())
    if type(value) is int:
        return 1 + abs(value).bit_length()
    return 1 + (len(value) if type(value) in (str, bytes) else 0)


def _text(value: Any, limit: int) -> str:
    """The value as text; of a huge one only its beginning, more than `limit` characters long."""
    parts, length = [], 0
    for part in _parts(value, limit + 1):
        parts.append(part)
        length += len(part)
        if length > limit:
            break
    return "".join(parts)


def _parts(value: Any, enough: int) -> Iterator[str]:
    kind = type(value)
    if is_tensor(value):
        yield "tensor("
        yield from _numbers(value, enough)
        yield f", {str(value.dtype).removeprefix('torch.')})"
    elif kind in (list, tuple):
        yield "[" if kind is list else "("
        for index, item in enumerate(value):
            if index:
                yield ", "
            yield from _parts(item, enough)
        yield "]" if kind is list else ",)" if len(value) == 1 else ")"
    elif kind is dict:
        yield "{"
        for index, (key, item) in enumerate(value.items()):
            yield f"{', ' if index else ''}{key!r}: "
            yield from _parts(item, enough)
        yield "}"
    else:
        yield repr(value)


def _numbers(tensor: Any, enough: int) -> Iterator[str]:
    if tensor.dim() == 0:
        yield _number(tensor.item())
    elif tensor.dim() == 1:
        yield f"[{', '.join(map(_number, tensor[:enough].tolist()))}]"
    else:
        for index in range(tensor.shape[0]):
            yield ", " if index else "["
            yield from _numbers(tensor[index], enough)
        yield "]" if tensor.shape[0] else "[]"


def _number(value: Any) -> str:
    return f"{value:.5g}" if type(value) is float and math.isfinite(value) else str(value)


def cut(text: str, limit: int = WHOLE) -> str:
    """The text, or its beginning with a mark when it is longer than `limit` characters."""
    return text if len(text) <= limit else text[:limit] + " …"
