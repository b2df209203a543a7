"""Chapter 6: the same memory as rows and as pages, and pages that come and go."""

from __future__ import annotations

from typing import Any

from . import traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words
from .shapes import colour, in_order, page, runs

Event = dict[str, Any]
ACROSS = 16
SIDE, STEP, ROW = 19.5, 22.5, 24.0


def _pool_of(event: Event) -> dict[int, str]:
    """Page -> the letter of its owner."""
    return {page: name for name, pages in event["owners"].items() for page in pages}


def colours_of(events: list[Event]) -> dict[str, str]:
    """The letter of a request -> its colour, by the order in which they came."""
    names = dict.fromkeys(event["request"] for event in events)
    return {name: colour(index) for index, name in enumerate(names)}


def _place(number: int, top: float) -> tuple[float, float]:
    return number % ACROSS * STEP, top + number // ACROSS * ROW


def _grid(
    canvas: Canvas,
    top: float,
    owners: dict[int, str],
    colours: dict[str, str],
    count: int,
    new: set[int],
) -> float:
    """The pool as squares, sixteen to a line; `new` pages are ringed. Returns its lower edge."""
    for number in range(count):
        x, y = _place(number, top)
        owner = owners.get(number, "")
        cls = colours.get(owner, "")
        page(canvas, x + 1, y, SIDE, owner, cls, new=number in new, key=f"p{number}")
    return top + -(-count // ACROSS) * ROW


@figure("ch06_fragmentation")
def fragmentation(word: Words) -> Drawing:
    """Rows waste what they reserve; pages leave holes, which a page table makes harmless."""
    trace = traces.load("ch06_paged_pool")
    events, colours = trace["events"], colours_of(trace["events"])
    four = events[trace["num_rows"] - 1]
    last = events[-1]
    frames = [
        _rows_frame(word, trace, four, colours),
        _four_frame(word, trace, four, colours),
        _holes_frame(word, trace, colours),
        _filled_frame(word, trace, last, colours),
    ]
    legend = [
        ("r1 solid", word("used")),
        ("r0 edge+hatch", word("reserved")),
        ("free", word("free")),
        ("ring", word("new")),
    ]
    return Drawing(frames, legend, columns=2)


def _rows_frame(word: Words, trace: Event, four: Event, colours: dict[str, str]) -> Frame:
    canvas = Canvas()
    for row, (name, pages) in enumerate(four["owners"].items()):
        for number in range(ACROSS):
            x, y = _place(row * ACROSS + number, 2)
            if number < len(pages):
                page(canvas, x + 1, y, SIDE, name, colours[name])
            else:
                canvas.rect(x + 1, y, SIDE, SIDE, f"{colours[name]} edge")
                canvas.hatch(x + 1, y, SIDE, SIDE, colours[name])
    tokens = sum(trace["lengths"][: trace["num_rows"]])
    share = _percent(tokens, trace)
    return Frame(canvas, word("rows", requests=trace["num_rows"], share=share))


def _four_frame(word: Words, trace: Event, four: Event, colours: dict[str, str]) -> Frame:
    canvas = Canvas()
    _grid(canvas, 2, {}, colours, trace["num_pages"], set())
    for name, pages in four["owners"].items():
        tokens = trace["lengths"][list(four["owners"]).index(name)]
        for index, number in enumerate(pages):
            x, y = _place(number, 2)
            part = min(1.0, tokens / trace["page_size"] - index)
            canvas.rect(x + 1, y, SIDE, SIDE, f"{colours[name]} edge")
            canvas.hatch(x + 1, y, SIDE, SIDE, colours[name])
            canvas.rect(x + 1, y, SIDE * part, SIDE, f"{colours[name]} solid")
            canvas.text(x + 1 + SIDE / 2, y + 14.5, name, "bold", size=SMALL, anchor="middle")
    used = sum(len(pages) for pages in four["owners"].values())
    free = trace["num_pages"] - used
    return Frame(canvas, word("pages", used=used, free=free, size=trace["page_size"]))


def _holes_frame(word: Words, trace: Event, colours: dict[str, str]) -> Frame:
    canvas = Canvas()
    went = [event for event in trace["events"] if event["kind"] == "go"]
    _grid(canvas, 2, _pool_of(went[-1]), colours, trace["num_pages"], set())
    lengths = [end - first for first, end in runs(went[-1]["free"])]
    values = {
        "most": max(len(event["owners"]) for event in trace["events"]),
        "share": _percent(sum(trace["lengths"]), trace),
        "gone": word("and").join(event["request"] for event in went),
        "free": sum(lengths),
        "longest": max(lengths),
    }
    return Frame(canvas, word("holes", **values))


def _filled_frame(word: Words, trace: Event, last: Event, colours: dict[str, str]) -> Frame:
    canvas = Canvas()
    new = last["owners"][last["request"]]
    _grid(canvas, 2, _pool_of(last), colours, trace["num_pages"], set(new))
    pieces = " + ".join(str(end - first) for first, end in runs(new))
    return Frame(canvas, word("filled", name=last["request"], need=len(new), pieces=pieces))


def _percent(tokens: int, trace: Event) -> str:
    return f"{100 * tokens / (trace['num_pages'] * trace['page_size']):.0f} %"


def _event_frame(word: Words, trace: Event, number: int) -> Frame:
    """The pool after event `number`, what is free in the order of its use, and what has moved."""
    events = trace["events"]
    event = events[number]
    name = event["request"]
    came = event["kind"] == "come"
    pages = event["owners"][name] if came else events[number - 1]["owners"][name]
    canvas = Canvas()
    bottom = _grid(
        canvas,
        2,
        _pool_of(event),
        colours_of(events),
        trace["num_pages"],
        set(pages) if came else set(),
    )
    if not came:
        for page_number in pages:
            x, y = _place(page_number, 2)
            canvas.rect(x + 0.5, y - 0.5, SIDE + 1, SIDE + 1, "ring")
    _free(canvas, word, bottom + 16, in_order(event["free"]))
    need = -(-event["tokens"] // trace["page_size"])
    values = {"name": name, "tokens": event["tokens"], "need": need, "pages": in_order(pages)}
    return Frame(canvas, word("come" if came else "go", **values))


def _free(canvas: Canvas, word: Words, y: float, pages: str) -> None:
    canvas.text(1, y, word("free_are"), "dim", size=SMALL)
    canvas.text(canvas.width, y, pages or word("none"), "mono", size=SMALL, anchor="end")


@figure("ch06_allocation")
def allocation(word: Words) -> Drawing:
    """Requests come and go: which pages each is given, and which are free after it."""
    trace = traces.load("ch06_paged_pool")
    goes = [n for n, event in enumerate(trace["events"]) if event["kind"] == "go"]
    shown = [0, goes[0] - 1, goes[0], goes[-1], goes[-1] + 1, goes[-1] + 2]
    frames = [_event_frame(word, trace, number) for number in shown]
    return Drawing(frames, _legend(word), columns=2)


@figure("live_pages")
def live_pages(word: Words) -> Drawing:
    """Every event of the example's pool, one frame each."""
    trace = traces.load("ch06_paged_pool")
    frames = [_event_frame(word, trace, number) for number in range(len(trace["events"]))]
    return Drawing(frames, _legend(word), steps=True)


def _legend(word: Words) -> list[tuple[str, str]]:
    return [("r1 solid", word("owned")), ("free", word("free")), ("ring", word("moved"))]
