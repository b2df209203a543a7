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


def lines(
    canvas: Canvas,
    top: float,
    width: float,
    xs: Sequence[float],
    series: Sequence[Series],
    ideal: str,
    *,
    y_title: str,
    x_title: str,
    height: float = 220,
) -> None:
    """A line per series, both axes logarithmic: what grows with x in proportion is straight.

    `ideal` names the line of that: the first value of the first series, times x.
    """
    left, right = 40.0, width - 16
    best = series[0].values[0]
    everything = [value for one in series for value in one.values] + [best * xs[-1] / xs[0]]
    low, high = 0.8 * min(everything), 1.15 * max(everything)
    floor = top + 54 + 20 * len(series) + height

    def x_of(x: float) -> float:
        return left + 16 + (right - left - 16) * math.log(x / xs[0]) / math.log(xs[-1] / xs[0])

    def y_of(value: float) -> float:
        return floor - height * math.log(value / low) / math.log(high / low)

    canvas.text(0, floor - height - 12, y_title, "dim", size=SMALL)
    for value in (m * 10.0**power for power in range(6) for m in (1, 2, 5)):
        if low <= value <= high:
            y, shown = y_of(value), number(value)
            canvas.line(left, y, width, y, "grid")
            canvas.text(left - 6, y + 4, shown, "dim mono", size=SMALL, anchor="end")
    for x in xs:
        canvas.text(x_of(x), floor + 18, x, "mono", size=SMALL, anchor="middle")
    canvas.text((left + right) / 2, floor + 36, x_title, "dim", size=SMALL, anchor="middle")
    canvas.line(x_of(xs[0]), y_of(best), x_of(xs[-1]), y_of(best * xs[-1] / xs[0]), "dash")
    for place, one in enumerate(series):
        points = [(x_of(x), y_of(value)) for x, value in zip(xs, one.values, strict=True)]
        dashed = " dashed" if place else ""
        canvas.path(
            "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), f"path {one.cls}{dashed}"
        )
        for (x, y), value in zip(points, one.values, strict=True):
            _mark(canvas, x, y, one)
            if place == 0 or x in (points[0][0], points[-1][0]):
                shown = number(value)
                lift = 18 if place or value > 2 * best else -9
                at = min(x + 5, width - text_width(shown, SMALL, bold=True) / 2 - 1)
                canvas.text(at, y + lift, shown, "bold", size=SMALL, anchor="middle")
    _names(canvas, top, series)
    canvas.line(38, top + 9 + 20 * len(series), 54, top + 9 + 20 * len(series), "dash")
    canvas.text(58, top + 13 + 20 * len(series), ideal, size=SMALL)


def _mark(canvas: Canvas, x: float, y: float, one: Series) -> None:
    if one.mark == "circle":
        canvas.circle(x, y, 4.5, f"dot {one.cls}")
    else:
        canvas.rect(x - 4, y - 4, 8, 8, f"dot {one.cls}", r=0)


def _names(canvas: Canvas, top: float, series: Sequence[Series]) -> None:
    for row, one in enumerate(series):
        y = top + 13 + row * 20
        _mark(canvas, 46, y - 4, one)
        canvas.text(58, y, one.name, size=SMALL)
