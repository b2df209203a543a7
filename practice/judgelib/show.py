"""Values as text for a verdict: whole where a reader may see all, shapes where he may not."""

from __future__ import annotations

import math
import textwrap
from typing import Any

WHOLE = 1500  # characters of a value that is shown whole
BRIEF = 200
_LINES = textwrap.TextWrapper(
    88, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False
)


def is_tensor(value: Any) -> bool:
    """Whether it is exactly a torch.Tensor, without importing torch."""
    return type(value).__module__ == "torch" and type(value).__name__ == "Tensor"


def whole(value: Any, limit: int = WHOLE) -> str:
    """The value in full, with tensors as nested lists of few digits, cut at `limit`."""
    return "\n".join(_LINES.wrap(cut(repr(_plain(value)), limit)))


def brief(value: Any) -> str:
    """One line: the value itself when it is short, else what it is made of."""
    if is_tensor(value) and value.numel() > 8:
        return shape(value)
    text = repr(_plain(value))
    return text if len(text) <= BRIEF else shape(value)


def shape(value: Any) -> str:
    """Types, dtypes and sizes without the values: what may be said of a hidden input."""
    if is_tensor(value):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if type(value) in (list, tuple):
        inner = f" of {shape(value[0])}" if value and type(value[0]) is type(value[-1]) else ""
        return f"{type(value).__name__}[{len(value)}]{inner}"
    if type(value) is dict:
        return "{" + ", ".join(f"{key!r}: {shape(item)}" for key, item in value.items()) + "}"
    return type(value).__name__


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


class _Words(str):
    """Text that is shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _plain(value: Any) -> Any:
    if is_tensor(value):
        kind = str(value.dtype).removeprefix("torch.")
        return _Words(f"tensor({_numbers(value.tolist())}, {kind})")
    if type(value) is list:
        return [_plain(item) for item in value]
    if type(value) is tuple:
        return tuple(_plain(item) for item in value)
    if type(value) is dict:
        return {key: _plain(item) for key, item in value.items()}
    return value


def _numbers(value: Any) -> str:
    if type(value) is list:
        return "[" + ", ".join(map(_numbers, value)) + "]"
    return f"{value:.5g}" if type(value) is float and math.isfinite(value) else str(value)


def cut(text: str, limit: int = WHOLE) -> str:
    """The text, or its beginning with a mark when it is longer than `limit` characters."""
    return text if len(text) <= limit else text[:limit] + " …"
