"""Chapter 06: from a position through the page table to a slot of the pool."""

from __future__ import annotations

from . import traces
from .canvas import SMALL, Canvas
from .ch06 import ACROSS, SIDE, colours_of
from .drawing import Drawing, Frame, figure
from .labels import Words
from .shapes import page

POOL_ROW = 32.0  # leaves room between the lines for the way to the page


@figure("ch06_page_table")
def page_table(word: Words) -> Drawing:
    """One position of the last request on its way through the page table to its slot."""
    trace = traces.load("ch06_paged_pool")
    size, last = trace["page_size"], trace["events"][-1]
    name = last["request"]
    cls = colours_of(trace["events"])[name]
    pages = last["owners"][name]
    index = len(pages) - 1  # the page that lies apart from the others
    position, target = index * size + 3, pages[index]
    canvas = Canvas()

    canvas.text(0, 13, word("position", name=name, position=position), "bold")
    canvas.text(0, 38, word("row", name=name), "dim", size=SMALL)
    top, high = 66.0, 30.0
    x_from = _table_row(canvas, top, high, pages, size, position, cls)
    pool = top + 88
    canvas.text(0, pool - 10, word("pool", n=trace["num_pages"]), "dim", size=SMALL)
    x_to, y_to = _pool_of(canvas, pool, trace["num_pages"], pages, target, name, cls)
    margin, between, centre = canvas.width - 8, y_to - 9, x_to + (SIDE - 1) / 2
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
    return Drawing([Frame(canvas)])


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
    wide, edge = 36.0, position // size * size
    shown = [0, 1, None, edge - 2, edge - 1, edge, edge + 1, edge + 2, position]
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
    return x + wide / 2


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
    canvas.text(1, top + 42, start, "mono dim", size=SMALL)
    end = canvas.width - 1
    canvas.text(end, top + 42, start + size - 1, "mono dim", size=SMALL, anchor="end")
    at = 1 + (offset + 0.5) * cell
    canvas.arrow([(at, top + 46), (at, top + 29)], f"path {cls}")
    canvas.text(at + 8, top + 46, start + offset, "mono bold", size=14)
