"""Chapter 11: how a weight lies in memory, what that costs by rows, and what a machine can do."""

from __future__ import annotations

from typing import Any

from . import data
from .canvas import SMALL, Canvas
from .charts import Axes, Series, names, number
from .drawing import Drawing, Frame, figure
from .labels import Words

OUTPUTS, INPUTS = 4, 6  # of the weight that is drawn
BLOCK = (2, 3)  # outputs and inputs of a packed block
LAYOUTS = {
    "plain": ("plain_ms", "r5", "square"),
    "transposed": ("transposed_ms", "r2", "square"),
    "oneDNN": ("onednn_ms", "r1", "circle"),
    "MKL": ("mkl_ms", "r3", "circle"),
}


# --- layouts ----------------------------------------------------------------------------------


def _order(name: str) -> list[tuple[int, int]]:
    """The entries (output, input) as they follow each other in memory."""
    if name == "plain":
        return [(o, i) for o in range(OUTPUTS) for i in range(INPUTS)]
    if name == "transposed":
        return [(o, i) for i in range(INPUTS) for o in range(OUTPUTS)]
    high, wide = BLOCK
    return [
        (o, i)
        for top in range(0, OUTPUTS, high)
        for left in range(0, INPUTS, wide)
        for i in range(left, left + wide)
        for o in range(top, top + high)
    ]


@figure("ch11_layouts")
def layouts(word: Words) -> Drawing:
    """The matrix with the order of its entries, and below it the memory."""
    frames = []
    for name in ("plain", "transposed", "packed"):
        canvas, order = Canvas(), _order(name)
        side, left, top = 30.0, 110.0, 22.0
        canvas.text(left - 12, top + OUTPUTS * side / 2 + 4, word("out"), size=SMALL, anchor="end")
        middle = left + INPUTS * side / 2
        canvas.text(middle, 13, word("in"), size=SMALL, anchor="middle")
        for place, (o, i) in enumerate(order):
            x, y = left + i * side, top + o * side
            canvas.rect(x, y, side - 2, side - 2, f"r{o + 1} solid")
            canvas.text(x + side / 2 - 1, y + 19, place, "mono", size=SMALL, anchor="middle")
        y = top + OUTPUTS * side + 30
        canvas.text(0, y - 8, word("memory"), size=SMALL)
        cell = canvas.width / len(order)
        for place, (o, _) in enumerate(order):
            canvas.rect(place * cell, y, cell - 1.5, 22, f"r{o + 1} solid", r=1)
        if name == "packed":
            size = BLOCK[0] * BLOCK[1]
            for block in range(1, len(order) // size):
                x = block * size * cell - 0.75
                canvas.line(x, y - 5, x, y + 27, "line")
        canvas.grow(y + 30)
        frames.append(Frame(canvas, word(name)))
    legend = [(f"r{o + 1} solid", word("output", n=o)) for o in range(OUTPUTS)]
    return Drawing(frames, legend)


# --- milliseconds by rows ---------------------------------------------------------------------


def _rows(key: str, dtype: str) -> list[dict[str, Any]]:
    return [row for row in data.bench_rows(key) if row["dtype"] == dtype]


@figure("ch11_layers")
def layers(word: Words) -> Drawing:
    """A line per layout, and the time below which none can go."""
    rows, canvas, high = _rows("ch11_layers", "float32"), Canvas(), 230.0
    xs = [row["rows"] for row in rows]
    series = [
        Series(word(name), [row[column] for row in rows], cls, mark)
        for name, (column, cls, mark) in LAYOUTS.items()
        if rows[0][column] is not None
    ]
    least = [row["least_ms"] for row in rows]
    values = [*least, *(value for one in series for value in one.values)]
    floor = 54 + 20 * len(series) + high
    ys = 0.8 * min(values), 1.15 * max(values)
    axes = Axes(canvas, canvas.width, floor, high, (xs[0], xs[-1]), ys)
    axes.ticks(xs, word("rows"), "ms")
    axes.line(xs, least, "dash")
    for one in series:
        axes.line(xs, one.values, f"path {one.cls}")
        axes.marks(xs, one)
    names(canvas, 0, series)
    y = 9 + 20 * len(series)
    canvas.line(38, y, 54, y, "dash")
    canvas.text(58, y + 4, word("least"), size=SMALL)
    return Drawing([Frame(canvas)])


# --- the roofline -----------------------------------------------------------------------------

BYTES = {"float32": 4, "bfloat16": 2}
INTENSITIES = (0.5, 256.0)


@figure("ch11_roofline")
def roofline(word: Words) -> Drawing:
    """What the machine can do at most, and what two layouts make of it; a frame per dtype."""
    limits = data.bench_rows("ch11_roofline")
    speeds = {limit["dtype"]: _speeds(limit) for limit in limits}
    every = [speed for one in speeds.values() for column in one.values() for speed in column]
    ys = 0.7 * min(every), 1.5 * max(*every, *(limit["gflop_s"] for limit in limits))
    frames = []
    for limit in limits:
        canvas, dtype, high = Canvas(), limit["dtype"], 230.0
        floor, size = 54 + 40 + high, BYTES[dtype]
        axes = Axes(canvas, canvas.width, floor, high, INTENSITIES, ys)
        axes.ticks([1, 4, 16, 64, 256], word("intensity"), "GFLOP/s")
        # The roof rises as fast as numbers come from memory, up to what can be multiplied.
        low, peak = max(INTENSITIES[0], ys[0] / limit["read_gb_s"]), limit["gflop_s"]
        ridge = 2 * limit["ridge_rows"] / size
        roof = [low * limit["read_gb_s"], peak, peak]
        axes.line([low, ridge, INTENSITIES[1]], roof, "line")
        counts = [row["rows"] for row in _rows("ch11_layers", dtype)]
        xs = [2 * count / size for count in counts]
        series = [
            Series(word("plain"), speeds[dtype]["plain"], "r5", "square"),
            Series(word("fastest"), speeds[dtype]["fastest"], "r1", "circle"),
        ]
        for one in series:
            axes.line(xs, one.values, f"path {one.cls}")
            axes.marks(xs, one)
        for x, count, speed in zip(xs, counts, speeds[dtype]["fastest"], strict=True):
            at = axes.x(x) - 8, axes.y(speed) - 7
            canvas.text(*at, count, "bold", size=SMALL, anchor="middle")
        names(canvas, 0, series)
        frames.append(Frame(canvas, word("frame", dtype=dtype, peak=number(peak))))
    return Drawing(frames, columns=2)


def _speeds(limit: dict[str, Any]) -> dict[str, list[float]]:
    """GFLOP/s of the plain layout and of the fastest, by rows."""
    found: dict[str, list[float]] = {"plain": [], "fastest": []}
    for row in _rows("ch11_layers", limit["dtype"]):
        times = [row[column] for column, *_ in LAYOUTS.values() if row[column] is not None]
        for name, milliseconds in (("plain", row["plain_ms"]), ("fastest", min(times))):
            found[name].append(2 * row["rows"] * limit["weights"] / milliseconds / 1e6)
    return found
