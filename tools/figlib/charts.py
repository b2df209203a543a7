"""Charts of measured columns: few marks, every value that matters written beside its mark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .canvas import SMALL, Canvas
from .measure import text_width


@dataclass(frozen=True)
class Series:
    """A measured column: its name stands at its line, its marks have a shape of their own."""

    name: str
    values: Sequence[float]
    cls: str
    mark: str  # circle or square


def number(value: float) -> str:
    """Three digits are what a reader compares."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.3g}"


def ceiling(value: float) -> float:
    """The next round number of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if m * power >= value)


def lines(
    canvas: Canvas,
    top: float,
    width: float,
    xs: Sequence[object],
    series: Sequence[Series],
    *,
    y_title: str,
    x_title: str,
    height: float = 190,
) -> None:
    """A line per series over evenly spaced columns."""
    left, right = 40.0, width - 16
    high = ceiling(max(max(one.values) for one in series))
    floor = top + 34 + 20 * len(series) + height

    def x_of(index: int) -> float:
        return left + 16 + (right - left - 16) * index / max(1, len(xs) - 1)

    def y_of(value: float) -> float:
        return floor - height * value / high

    canvas.text(0, floor - height - 12, y_title, "dim", size=SMALL)
    for step in range(5):
        value = high * step / 4
        canvas.line(left, y_of(value), width, y_of(value), "grid")
        canvas.text(left - 6, y_of(value) + 4, number(value), "dim mono", size=SMALL, anchor="end")
    for index, x in enumerate(xs):
        canvas.text(x_of(index), floor + 18, x, "mono", size=SMALL, anchor="middle")
    canvas.text((left + right) / 2, floor + 36, x_title, "dim", size=SMALL, anchor="middle")
    for place, one in enumerate(series):
        points = [(x_of(i), y_of(value)) for i, value in enumerate(one.values)]
        dashed = " dashed" if place else ""
        canvas.path(
            "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), f"path {one.cls}{dashed}"
        )
        for (x, y), value in zip(points, one.values, strict=True):
            _mark(canvas, x, y, one)
            if place == 0 or x in (points[0][0], points[-1][0]):
                shown = number(value)
                lift = -9 if place == 0 else 18
                at = min(x - 4, width - text_width(shown, SMALL, bold=True) / 2 - 1)
                canvas.text(at, y + lift, shown, "bold", size=SMALL, anchor="middle")
    _names(canvas, top, width, series)


def _mark(canvas: Canvas, x: float, y: float, one: Series) -> None:
    if one.mark == "circle":
        canvas.circle(x, y, 4.5, f"dot {one.cls}")
    else:
        canvas.rect(x - 4, y - 4, 8, 8, f"dot {one.cls}", r=0)


def _names(canvas: Canvas, top: float, width: float, series: Sequence[Series]) -> None:
    for row, one in enumerate(series):
        y = top + 13 + row * 20
        _mark(canvas, 46, y - 4, one)
        canvas.text(58, y, one.name, size=SMALL)
