"""Chapter 2: which heads share keys, who sees whom, and positions as rotations."""

from __future__ import annotations

import math

from . import traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words


@figure("ch02_attention")
def attention(word: Words) -> Drawing:
    """The real model's heads, and the causal mask with the row that the example changes."""
    frames = [_heads(word), _mask(word)]
    legend = [
        ("r1 solid", word("seen")),
        ("soft", word("hidden")),
        ("hot solid", word("changed")),
    ]
    return Drawing(frames, legend, columns=2)


def _heads(word: Words) -> Frame:
    config = traces.load("ch03_models")["config"]
    queries, keys = config["num_qo_heads"], config["num_kv_heads"]
    group = queries // keys
    canvas = Canvas()
    side, step = 30.0, 36.5
    space = (canvas.width - queries * step) / (keys - 1)
    canvas.text(0, 13, word("queries", n=queries, dim=config["head_dim"]), size=SMALL)
    centres = []
    for head in range(queries):
        x = head * step + head // group * space + 3
        cls = f"r{head // group + 1}"
        canvas.box(x, 24, side, side, f"q{head}", f"{cls} solid", "mono", size=SMALL)
        centres.append(x + side / 2)
    canvas.text(0, 206, word("keys", n=keys, group=group), size=SMALL)
    for head in range(keys):
        mine = centres[head * group : (head + 1) * group]
        middle = sum(mine) / group
        cls = f"r{head + 1}"
        for x in mine:
            canvas.arrow([(x, 24 + side), (middle + (x - middle) * 0.5, 128)], f"path {cls}")
        canvas.box(middle - 40, 130, 80, 26, f"k{head}", f"{cls} solid", "mono", size=SMALL)
        canvas.box(middle - 40, 160, 80, 26, f"v{head}", f"{cls} solid", "mono", size=SMALL)
    canvas.grow(224)
    return Frame(canvas, word("heads", group=group, queries=queries, keys=keys))


def _mask(word: Words) -> Frame:
    trace = traces.load("ch02_layers")
    count, changed, rows = trace["tokens"], trace["changed"], trace["rows"]
    canvas = Canvas()
    side, left, top = 20.0, 92.0, 26.0
    canvas.text(left, 13, word("columns"), "dim", size=SMALL)
    for row in range(count):
        y = top + row * (side + 2)
        hot = "hot bold" if row in rows else "dim"
        canvas.text(left - 10, y + 14.5, row, f"mono {hot}", size=SMALL, anchor="end")
        for column in range(count):
            x = left + column * (side + 2)
            seen = column <= row
            kind = "soft" if not seen else "hot solid" if column == changed else "r1 solid"
            canvas.rect(x, y, side, side, kind, r=2)
        if row in rows:
            canvas.text(left + count * (side + 2) + 6, y + 15, "≠", "hot bold")
    canvas.text(0, 13, word("rows"), "dim", size=SMALL)
    canvas.grow(224)
    return Frame(canvas, word("mask", token=changed, rows=f"{rows[0]}–{rows[-1]}"))


@figure("ch02_rope")
def rope(word: Words) -> Drawing:
    """A hand per pair of coordinates and position: fast pairs, slow pairs."""
    trace = traces.load("ch02_layers")
    canvas = Canvas()
    left, top, step, radius = 74.0, 34.0, 41.0, 16.0
    canvas.text(left - 22, 13, word("position"), "dim", size=SMALL, anchor="end")
    for column, position in enumerate(trace["positions"]):
        x = left + 18 + column * step
        canvas.text(x, 13, position, "mono bold", anchor="middle")
    half = trace["head_dim"] // 2
    for pair, angles in enumerate(trace["angles"]):
        cls = f"r{pair + 1}"
        y = top + 12 + pair * 48
        canvas.text(0, y - 2, word("pair", n=pair), "bold", size=SMALL)
        canvas.text(0, y + 14, f"({pair}, {pair + half})", "mono dim", size=SMALL)
        for column, angle in enumerate(angles):
            x = left + 18 + column * step
            canvas.circle(x, y, radius, f"{cls} solid")
            canvas.path(f"M{x} {y}h{radius}", "grid")
            tip = (x + (radius - 2) * math.cos(angle), y - (radius - 2) * math.sin(angle))
            canvas.arrow([(x, y), tip], f"path {cls}")
    y = top + len(trace["angles"]) * 48 + 14
    canvas.lines(0, y, word("note", dim=trace["head_dim"]), canvas.width, size=SMALL)
    return Drawing([Frame(canvas)])


@figure("ch02_rope_distance")
def rope_distance(word: Words) -> Drawing:
    """One query and one key at all pairs of positions: equal distance, equal product."""
    trace = traces.load("ch02_layers")
    products, canvas = trace["products"], Canvas()
    left, top, wide, high = 38.0, 40.0, 45.0, 27.0
    canvas.text(left, 13, word("key"), "dim", size=SMALL)
    canvas.text(0, top - 9, word("query"), "dim", size=SMALL)
    for row, values in enumerate(products):
        y = top + row * (high + 2)
        canvas.text(left - 10, y + 18, row, "mono bold", size=SMALL, anchor="end")
        canvas.text(left + row * (wide + 1) + wide / 2, top - 9, row, "mono bold", anchor="middle")
        for column, value in enumerate(values):
            x = left + column * (wide + 1)
            seen = column <= row
            cls = f"r{(row - column) % 6 + 1} solid" if seen else "soft"
            canvas.rect(x, y, wide, high, cls, r=2)
            label = f"{value:.2f}".replace("-", "−")
            dim = "" if seen else " dim"
            middle = x + wide / 2
            canvas.text(middle, y + 18, label, f"mono{dim}", size=SMALL, anchor="middle")
    return Drawing([Frame(canvas)], [("r1 solid", word("same")), ("soft", word("later"))])
