"""Chapter 06: from a position through the page table to a slot of the pool."""

from __future__ import annotations

from . import traces
from .canvas import SMALL, Canvas
from .ch06 import ACROSS, SIDE, Event, colours_of
from .drawing import Drawing, Frame, figure
from .labels import Words
from .shapes import page

POOL_ROW = 32.0  # leaves room between the lines for the way to the page


@figure("ch06_page_table")
def page_table(word: Words) -> Drawing:
    """Positions of the last request on their way through the page table to their slots."""
    trace = traces.load("ch06_paged_pool")
    size, pages = trace["page_size"], trace["events"][-1]["owners"][trace["events"][-1]["request"]]
    edge = (len(pages) - 1) * size  # of the page that lies apart from the others
    positions = (edge + 3, edge, edge - 1, edge // 2, size, size - 1, 0)
    return Drawing([_looked_up(word, trace, position) for position in positions], steps=True)


def _looked_up(word: Words, trace: Event, position: int) -> Frame:
    size, last = trace["page_size"], trace["events"][-1]
    name = last["request"]
    cls = colours_of(trace["events"])[name]
    pages = last["owners"][name]
    target = pages[position // size]
    canvas = Canvas()

    canvas.text(0, 13, word("position", name=name, position=position), "bold")
    canvas.text(0, 38, word("row", name=name), "dim", size=SMALL)
    top, high = 66.0, 30.0
    x_from = _table_row(canvas, top, high, pages, size, position, cls)
    pool = top + 88
    canvas.text(0, pool - 13, word("pool", n=trace["num_pages"]), "dim", size=SMALL)
    x_to, y_to = _pool_of(canvas, pool, trace["num_pages"], pages, target, name, cls)
    margin, between, centre = canvas.width - 8, y_to - 6, x_to + (SIDE - 1) / 2
    start, turn = top + high + 3, pool - 26
    bends = [(x_from, start), (x_from, turn), (margin, turn), (margin, between), (centre, between)]
    canvas.arrow([*bends, (centre, y_to - 1)], f"path {cls}")

    slots = pool + 4 * POOL_ROW + 36
    bottom = y_to + SIDE
    canvas.path(f"M{x_to} {bottom}L1 {slots - 2}", "dash")
    canvas.path(f"M{x_to + SIDE - 1} {bottom}L{canvas.width - 1} {slots - 2}", "dash")
    offset = position % size
    _slots(canvas, slots, target * size, offset, size, cls)
    formula = f"{target * size + offset} = {target} × {size} + {offset}"
    canvas.text(0, slots + 68, word("slot", formula=formula), size=SMALL)
    return Frame(canvas)


def _table_row(
    canvas: Canvas,
    top: float,
    high: float,
    pages: list[int],
    size: int,
    position: int,
    cls: str,
) -> float:
    """The row of the table around `position`, which is ringed; returns where that is."""
    wide, last = 36.0, len(pages) * size - 1
    first = min(max(position - 4, 3), last - 5)  # where the middle of what is shown begins
    shown = [0, 1, None, *range(first, first + 6)]
    if position <= 5:
        shown = [*range(6), None, last - 1, last]
    x_at = 0.0
    for number, one in enumerate(shown):
        x = 1 + number * (wide + 4.2)
        if one is None:
            canvas.text(x + wide / 2, top + 19, "…", "dim", anchor="middle")
            continue
        location = pages[one // size] * size + one % size
        canvas.text(x + wide / 2, top - 7, one, "mono dim", size=SMALL, anchor="middle")
        page(canvas, x, top, wide, str(location), cls, new=one == position, height=high)
        if one % size == 0 and one:
            canvas.line(x - 2.1, top - 18, x - 2.1, top + high + 6, "dash")
        if one == position:
            x_at = x + wide / 2
    return x_at


def _pool_of(
    canvas: Canvas, top: float, count: int, pages: list[int], target: int, name: str, cls: str
) -> tuple[float, float]:
    """The pool with the pages of a request; returns where the page `target` lies."""
    places = [(1 + n % ACROSS * 21.0, top + n // ACROSS * POOL_ROW) for n in range(count)]
    for number, (x, y) in enumerate(places):
        if number in pages:
            label = str(number) if number == target else name
            page(canvas, x, y, SIDE - 1, label, cls, new=number == target)
        else:
            canvas.rect(x, y, SIDE - 1, SIDE - 1, "soft")
    return places[target]


def _slots(canvas: Canvas, top: float, start: int, offset: int, size: int, cls: str) -> None:
    """The slots of a page, from `start` on, with an arrow to one of them."""
    cell = (canvas.width - 2) / size
    for slot in range(size):
        canvas.rect(1 + slot * cell, top, cell - 1, 26, f"{cls} solid", r=2)
    canvas.rect(1 + offset * cell - 0.5, top - 0.5, cell, 27, "ring", r=2)
    if offset > 1:
        canvas.text(1, top + 42, start, "mono dim", size=SMALL)
    if offset < size - 2:
        end = start + size - 1
        canvas.text(canvas.width - 1, top + 42, end, "mono dim", size=SMALL, anchor="end")
    at = 1 + (offset + 0.5) * cell
    canvas.arrow([(at, top + 46), (at, top + 29)], f"path {cls}")
    side, anchor = (8, "start") if offset < size / 2 else (-8, "end")
    canvas.text(at + side, top + 46, start + offset, "mono bold", size=14, anchor=anchor)
