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


class Axes:
    """Two logarithmic axes on a canvas: where a value lies, and what is written beside them."""

    def __init__(
        self,
        canvas: Canvas,
        width: float,
        floor: float,
        height: float,
        xs: tuple[float, float],
        ys: tuple[float, float],
    ) -> None:
        """The area ends at the right at `width`, below at `floor`; `xs` and `ys` are its ranges."""
        self._canvas, self._width, self._floor, self._height = canvas, width, floor, height
        self._xs, self._ys = xs, ys
        self._left, self._right = 56.0, width - 16

    def x(self, value: float) -> float:
        """Where `value` lies."""
        (low, high), wide = self._xs, self._right - self._left
        return self._left + wide * math.log(value / low) / math.log(high / low)

    def y(self, value: float) -> float:
        """Where `value` lies."""
        low, high = self._ys
        return self._floor - self._height * math.log(value / low) / math.log(high / low)

    def ticks(self, xs: Sequence[float], x_title: str, y_title: str) -> None:
        """The titles, the numbers `xs`, and as many round numbers as there are at the left."""
        canvas, floor = self._canvas, self._floor
        canvas.text(0, floor - self._height - 12, y_title, "dim", size=SMALL)
        for value in (m * 10.0**power for power in range(6) for m in (1, 2, 5)):
            if self._ys[0] <= value <= self._ys[1]:
                y, shown = self.y(value), number(value)
                canvas.line(40, y, self._width, y, "grid")
                canvas.text(34, y + 4, shown, "dim mono", size=SMALL, anchor="end")
        for x in xs:
            canvas.text(self.x(x), floor + 18, x, "mono", size=SMALL, anchor="middle")
        middle = (self._left - 16 + self._right) / 2
        canvas.text(middle, floor + 36, x_title, "dim", size=SMALL, anchor="middle")

    def line(self, xs: Sequence[float], ys: Sequence[float], cls: str) -> None:
        """A line through points."""
        points = (f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))
        self._canvas.path("M" + "L".join(points), cls)

    def marks(self, xs: Sequence[float], one: Series) -> None:
        """The marks of a series."""
        for x, y in zip(xs, one.values, strict=True):
            _mark(self._canvas, self.x(x), self.y(y), one)


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
    best = series[0].values[0]
    everything = [value for one in series for value in one.values] + [best * xs[-1] / xs[0]]
    floor = top + 54 + 20 * len(series) + height
    ys = 0.8 * min(everything), 1.15 * max(everything)
    axes = Axes(canvas, width, floor, height, (xs[0], xs[-1]), ys)
    axes.ticks(xs, x_title, y_title)
    axes.line([xs[0], xs[-1]], [best, best * xs[-1] / xs[0]], "dash")
    for place, one in enumerate(series):
        axes.line(xs, one.values, f"path {one.cls}{' dashed' if place else ''}")
        axes.marks(xs, one)
        for x, value in zip(xs, one.values, strict=True):
            if place == 0 or x in (xs[0], xs[-1]):
                shown = number(value)
                lift = 18 if place or value > 2 * best else -9
                at = min(axes.x(x) + 5, width - text_width(shown, SMALL, bold=True) / 2 - 1)
                canvas.text(at, axes.y(value) + lift, shown, "bold", size=SMALL, anchor="middle")
    names(canvas, top, series)
    canvas.line(38, top + 9 + 20 * len(series), 54, top + 9 + 20 * len(series), "dash")
    canvas.text(58, top + 13 + 20 * len(series), ideal, size=SMALL)


def _mark(canvas: Canvas, x: float, y: float, one: Series) -> None:
    if one.mark == "circle":
        canvas.circle(x, y, 4.5, f"dot {one.cls}")
    else:
        canvas.rect(x - 4, y - 4, 8, 8, f"dot {one.cls}", r=0)


def names(canvas: Canvas, top: float, series: Sequence[Series]) -> None:
    """The names of the series, a line each, with their marks."""
    for row, one in enumerate(series):
        y = top + 13 + row * 20
        _mark(canvas, 46, y - 4, one)
        canvas.text(58, y, one.name, size=SMALL)
