"""Chapter 7: batches without padding, what each row may look at, and what a batch is worth."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from . import charts, data, traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words
from .shapes import colour

KINDS = ("prefill", "hit", "decode")


@figure("ch07_ragged")
def ragged(word: Words) -> Drawing:
    """The same tokens as a rectangle with padding, and end to end with boundaries."""
    trace = traces.load("ch07_attention")
    return Drawing(
        [_padded(word, trace), _end_to_end(word, trace)],
        [("r0 edge+hatch", word("padding")), ("ring", word("sampled"))],
        columns=2,
    )


def _padded(word: Words, trace: dict[str, Any]) -> Frame:
    canvas = Canvas()
    lengths = [request["new"] for request in trace["requests"]]
    longest = max(lengths)
    side, left = 34.0, 140.0
    for row, length in enumerate(lengths):
        y = 8 + row * (side + 6)
        canvas.text(left - 10, y + 22, word(KINDS[row]), size=SMALL, anchor="end")
        for cell in range(longest):
            x = left + cell * (side + 4)
            if cell < length:
                canvas.rect(x, y, side, side, f"{colour(row)} solid")
                label = trace["positions"][trace["cu_seqlens_q"][row] + cell]
                canvas.text(x + side / 2, y + 22, label, "mono", anchor="middle")
            else:
                canvas.rect(x, y, side, side, "r0 edge")
                canvas.hatch(x, y, side, side, "r0")
    cells = longest * len(lengths)
    bottom = 8 + len(lengths) * (side + 6)
    canvas.grow(bottom + 2)
    caption = word("padded", cells=cells, real=sum(lengths), waste=cells - sum(lengths))
    return Frame(canvas, caption)


def _end_to_end(word: Words, trace: dict[str, Any]) -> Frame:
    canvas = Canvas()
    bounds = trace["cu_seqlens_q"]
    total = bounds[-1]
    side, step, left = 34.0, 41.0, 14.0
    top = 44.0
    for row, (start, end) in enumerate(pairwise(bounds)):
        middle = left + (start + end) / 2 * step - 3
        canvas.brace(left + start * step, left + end * step - 7, top - 12)
        if row < 2:
            canvas.text(middle, top - 17, word(KINDS[row]), size=SMALL, anchor="middle")
        else:
            at = left + end * step - 7
            canvas.text(at, top - 17, word(KINDS[row]), size=SMALL, anchor="end")
        for cell in range(start, end):
            x = left + cell * step
            canvas.rect(x, top, side, side, f"{colour(row)} solid")
            canvas.text(x + side / 2, top + 22, trace["positions"][cell], "mono", anchor="middle")
        canvas.rect(left + (end - 1) * step - 1, top - 1, side + 2, side + 2, "ring")
    for bound in bounds:
        x = left + bound * step - 3.5
        canvas.line(x, top + side + 4, x, top + side + 14)
        canvas.text(x, top + side + 29, bound, "mono bold", anchor="middle")
    canvas.text(left - 8, top + side + 50, f"cu_seqlens_q = {bounds}", "mono", size=SMALL)
    return Frame(canvas, word("ragged", total=total, n=len(bounds)))


@figure("ch07_mixed")
def mixed(word: Words) -> Drawing:
    """Row by row: position, place of its KV, and the cached positions that it looks at."""
    trace = traces.load("ch07_attention")
    canvas = Canvas()
    side, left, top, gap = 16.0, 60.0, 74.0, 5.0
    bounds = trace["cu_seqlens_k"]

    def at(request: int, column: int) -> float:
        return left + (bounds[request] + column) * side + request * gap

    canvas.text(0, top - 9, word("row"), "dim", size=SMALL)
    canvas.text(left - 10, top - 9, word("loc"), "dim mono", size=SMALL, anchor="end")
    for number, request in enumerate(trace["requests"]):
        x1, x2 = at(number, 0), at(number, bounds[number + 1] - bounds[number])
        canvas.text((x1 + x2) / 2, 14, word(KINDS[number]), "bold", anchor="middle")
        place = word("in_place" if request["in_place"] else "gathered")
        canvas.text((x1 + x2) / 2, 31, place, "dim", size=SMALL, anchor="middle")
        canvas.brace(x1, x2 - 1, 40, f"path {colour(number)}")
        for column, location in enumerate(request["locations"]):
            centre = at(number, column) + side / 2 - 0.75
            canvas.text(centre, top - 9, location, size=11.4, anchor="middle")
    row = 0
    for number, (start, end) in enumerate(pairwise(trace["cu_seqlens_q"])):
        cls = colour(number)
        for row in range(start, end):
            y = top + row * (side + 1) + number * gap
            canvas.text(8, y + 12, row, "mono dim", size=SMALL, anchor="middle")
            loc = trace["out_loc"][row]
            canvas.text(left - 10, y + 12, loc, "mono bold", size=SMALL, anchor="end")
            cached = trace["requests"][number]["cached"]
            for column, seen in enumerate(trace["seen"][row]):
                kind = f"{cls} solid" if seen and column < cached else f"{cls} strong"
                kind = kind if seen else "soft"
                canvas.rect(at(number, column), y, side - 1.5, side - 0.5, kind, r=2)
    y = top + (row + 1) * (side + 1) + 2 * gap + 18
    for name in ("cu_seqlens_q", "cu_seqlens_k"):
        canvas.text(0, y, f"{name} = {trace[name]}", "mono", size=SMALL)
        y += 18
    legend = [
        ("r2 solid", word("cached")),
        ("r2 strong", word("new")),
        ("soft", word("hidden")),
    ]
    return Drawing([Frame(canvas)], legend)


@figure("ch07_throughput")
def throughput(word: Words) -> Drawing:
    """Tokens per second over the size of the batch, measured."""
    key = "ch07_attention"
    sizes = data.column(key, "batch_size")
    canvas = Canvas()
    charts.lines(
        canvas,
        0,
        canvas.width,
        sizes,
        [
            charts.Series(word("batch"), data.column(key, "one_batch"), "r1", "circle"),
            charts.Series(word("single"), data.column(key, "one_at_a_time"), "r2", "square"),
        ],
        word("ideal"),
        y_title=word("y"),
        x_title=word("x"),
    )
    return Drawing([Frame(canvas)])
