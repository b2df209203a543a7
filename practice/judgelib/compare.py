"""Compare what was expected with what came back: exact types, exact or within a tolerance.

Runs on the trusted side, on decoded values only: nothing here calls a method of the submission.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from practice.judgelib import show
from practice.judgelib.text import Text

if TYPE_CHECKING:
    from torch import Tensor

Path = tuple[Any, ...]


@dataclass(frozen=True)
class Difference:
    """The first place at which two values differ: `path` leads to it, from the outside in."""

    path: Path
    reason: Text
    expected: Any
    got: Any

    @property
    def where(self) -> str:
        """The place as an index, such as `[3]['cached_len'][0, 2]`; empty for the whole value."""
        return "".join(
            f"[{', '.join(map(str, key))}]" if type(key) is tuple else f"[{key!r}]"
            for key in self.path
        )


@dataclass
class Comparison:
    """The outcome: the first difference if there is one, and the largest error of a float seen.

    The error is infinite when the values differ in another way than by a number.
    """

    difference: Difference | None = None
    error: float = 0.0

    @property
    def equal(self) -> bool:
        return self.difference is None


def compare(expected: Any, got: Any, tolerance: float | None = None) -> Comparison:
    """Compare plain values and tensors; `tolerance` is the largest absolute error of floats.

    Types must be the same to the letter: True is not 1, a tuple is not a list, float32 is not
    float64. NaN equals NaN only, an infinity only itself.
    """
    found = Comparison()
    _walk(expected, got, tolerance, (), found)
    return found


def _walk(expected: Any, got: Any, tolerance: float | None, path: Path, found: Comparison) -> None:
    if type(expected) is not type(got):
        _differ(found, path, _types(expected, got), expected, got)
    elif type(expected) is float:
        _floats(expected, got, tolerance, path, found)
    elif type(expected) in (list, tuple):
        for index, (one, other) in enumerate(zip(expected, got, strict=False)):
            _walk(one, other, tolerance, (*path, index), found)
        if len(expected) != len(got):
            shorter = min(len(expected), len(got))
            zh, en = f"长度应为 {len(expected)}，得到 {len(got)}", _length(expected, got)
            _differ(found, (*path, shorter), Text(zh, en), expected, got)
    elif type(expected) is dict:
        _dicts(expected, got, tolerance, path, found)
    elif show.is_tensor(expected):
        _tensors(expected, got, tolerance, path, found)
    elif expected != got:
        _differ(found, path, Text("值不同", "the values differ"), expected, got)


def _differ(found: Comparison, path: Path, why: Text, expected: Any, got: Any) -> None:
    found.error = math.inf
    _note(found, path, why, expected, got)


def _note(found: Comparison, path: Path, why: Text, expected: Any, got: Any) -> None:
    """Keep the first difference; a wrong length counts after the items that both have."""
    if found.difference is None:
        found.difference = Difference(path, why, expected, got)


def _types(expected: Any, got: Any) -> Text:
    one, other = type(expected).__name__, type(got).__name__
    return Text(f"类型应为 {one}，得到 {other}", f"the type must be {one}, got {other}")


def _length(expected: Any, got: Any) -> str:
    return f"the length must be {len(expected)}, got {len(got)}"


def _floats(
    expected: float, got: float, tolerance: float | None, path: Path, found: Comparison
) -> None:
    if expected == got or (math.isnan(expected) and math.isnan(got)):
        return
    error = abs(expected - got)
    error = error if error < math.inf else math.inf  # NaN too
    found.error = max(found.error, error)
    if tolerance is None or not error <= tolerance:
        _note(found, path, _error(error, tolerance), expected, got)


def _error(error: float, tolerance: float | None) -> Text:
    allowed = 0 if tolerance is None else tolerance
    return Text(f"误差 {error:.3g}，允许 {allowed:g}", f"error {error:.3g}, allowed {allowed:g}")


def _dicts(expected: Any, got: Any, tolerance: float | None, path: Path, found: Comparison) -> None:
    kinds = {(type(key), key) for key in expected}
    other = {(type(key), key) for key in got}
    for _, key in sorted(kinds - other, key=repr):
        name = show.brief(key)
        _differ(found, path, Text(f"缺少键 {name}", f"key {name} is missing"), expected, got)
    for _, key in sorted(other - kinds, key=repr):
        name = show.brief(key)
        _differ(found, path, Text(f"多出键 {name}", f"there is a key {name}"), expected, got)
    for key in expected:
        if (type(key), key) in other:
            _walk(expected[key], got[key], tolerance, (*path, key), found)


def _tensors(
    expected: Tensor, got: Tensor, tolerance: float | None, path: Path, found: Comparison
) -> None:
    for name in ("dtype", "shape"):
        one, other = getattr(expected, name), getattr(got, name)
        if one != other:
            one, other = (list(x) if name == "shape" else x for x in (one, other))
            why = Text(f"{name} 应为 {one}，得到 {other}", f"the {name} must be {one}, got {other}")
            return _differ(found, path, why, expected, got)
    if expected.dtype.is_floating_point and expected.numel():
        return _float_tensors(expected, got, tolerance, path, found)
    wrong = (expected != got).nonzero()
    if len(wrong):
        index = tuple(wrong[0].tolist())
        values = expected[index].item(), got[index].item()
        why = Text("值不同", "the values differ")
        _differ(found, (*path, index) if index else path, why, *values)
    return None


def _float_tensors(
    expected: Tensor, got: Tensor, tolerance: float | None, path: Path, found: Comparison
) -> None:
    one, other = expected.double(), got.double()
    same = (one == other) | (one.isnan() & other.isnan())
    error = (one - other).abs().masked_fill(same, 0.0).nan_to_num(math.inf, math.inf)
    found.error = max(found.error, error.max().item())
    wrong = (error > (0.0 if tolerance is None else tolerance)).nonzero()
    if len(wrong):
        index = tuple(wrong[0].tolist())
        why = _error(error.max().item(), tolerance)
        why = Text(f"最大{why.zh}", f"largest {why.en}")
        values = expected[index].item(), got[index].item()
        _note(found, (*path, index) if index else path, why, *values)
