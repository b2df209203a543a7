"""Chapter 13: the same pool under two ways of keeping pages, and a request that gives way."""

from __future__ import annotations

from typing import Any

from . import traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words
from .shapes import colour

LETTERS = "abcdefghij"
LEFT, HIGH, ROW = 28.0, 120.0, 13.0  # where columns begin, the chart's height, a request's row
ACROSS, WIDE, TALL = 6, 58.0, 38.0  # pages in a line, and how much room each has


def _trace() -> dict[str, Any]:
    return traces.load("ch13_preemption")


# --- the pool, pass by pass -------------------------------------------------------------------


@figure("ch13_pool")
def pool(word: Words) -> Drawing:
    """The example's ten questions, twice: pages held and written, and who was in each pass."""
    trace, frames = _trace(), []
    most = trace["num_pages"]["two"]
    longest = max(len(trace[name]) for name in ("longest", "expected"))
    for name in ("longest", "expected"):
        canvas, passes = Canvas(), trace[name]
        step = (canvas.width - LEFT) / longest
        _pages(canvas, word, passes, step, most)
        _requests(canvas, passes, step, HIGH + 24)
        rows = sum(len(one["batch"]) for one in passes) / len(passes)
        frames.append(Frame(canvas, word(name, passes=len(passes), rows=f"{rows:.1f}")))
    highest = max(frame.canvas.height for frame in frames)
    for frame in frames:
        frame.canvas.grow(highest)
    legend = [
        ("r4 full", word("written")),
        ("r4 pale", word("empty")),
        ("r1 strong", word("prefill")),
        ("r1 solid", word("decode")),
        ("free", word("queue")),
    ]
    return Drawing(frames, legend, columns=2)


def _pages(
    canvas: Canvas, word: Words, passes: list[dict[str, Any]], step: float, most: int
) -> None:
    """A column per pass: the pages with KV, and on top of them those that are only held."""
    floor = HIGH + 14

    def height(count: int) -> float:
        return HIGH * count / most

    for count in (most // 2, most):
        canvas.line(LEFT, floor - height(count), canvas.width, floor - height(count), "grid")
        y = floor - height(count) + 4
        canvas.text(LEFT - 5, y, count, "dim mono", size=SMALL, anchor="end")
    canvas.text(LEFT + 4, 10, word("pages"), "dim", size=SMALL)
    for column, one in enumerate(passes):
        x, held, written = LEFT + column * step, height(one["held"]), height(one["written"])
        canvas.rect(x, floor - held, step - 1, max(held, 0.1), "r4 pale", r=0)
        canvas.rect(x, floor - written, step - 1, max(written, 0.1), "r4 full", r=0)
    canvas.line(LEFT, floor, canvas.width, floor)


def _requests(canvas: Canvas, passes: list[dict[str, Any]], step: float, top: float) -> None:
    """A row per request; the first pass of each is its prefill."""
    mine: dict[int, list[int]] = {}
    for column, one in enumerate(passes):
        for request, *_ in one["batch"]:
            mine.setdefault(request, []).append(column)
    for request, columns in sorted(mine.items()):
        y = top + request * ROW
        canvas.text(12, y + 10, LETTERS[request], "bold", size=SMALL, anchor="middle")
        for column in range(columns[-1] + 1):
            x = LEFT + column * step
            if column in columns:
                kind = "strong" if column == columns[0] else "solid"
                canvas.rect(x, y, step - 1, ROW - 2, f"{colour(request)} {kind}", r=1)
            else:
                canvas.rect(x + 2, y + 3, step - 5, ROW - 8, "free", r=1)


# --- the last page ----------------------------------------------------------------------------


@figure("live_retraction")
def live_retraction(word: Words) -> Drawing:
    """Step by step: who has which pages, and how far they are written."""
    trace = _trace()
    steps, size = trace["last_page"]["steps"], trace["last_page"]["page_size"]
    count, frames = trace["num_pages"]["last"], []
    before: dict[str, list[int]] = {}
    prompts = {request: end for request, _, end in steps[0]["batch"]}
    said = dict.fromkeys(prompts, 0)  # request -> its tokens so far
    ended: set[int] = set()
    for number, one in enumerate(steps, 1):
        canvas = Canvas()
        said |= {request: end + 1 - prompts[request] for request, _, end in one["batch"]}
        ended |= {*one["done"]}
        _standing(canvas, word, one, said, ended)
        _pool(canvas, one, size, count, 44.0)
        frames.append(Frame(canvas, _told(word, number, one, before)))
        before = one["pages"]
    legend = [
        ("r1 full", word("with_kv")),
        ("r1 pale", word("reserved")),
        ("soft", word("kept")),
        ("free", word("free")),
    ]
    return Drawing(frames, legend, steps=True)


def _standing(
    canvas: Canvas, word: Words, one: dict[str, Any], said: dict[int, int], ended: set[int]
) -> None:
    """A line per request."""
    for row, (request, count) in enumerate(sorted(said.items())):
        pages = one["pages"].get(str(request), [])
        kind = "ended" if request in ended else "runs" if pages else "waits"
        text = word(kind, who=LETTERS[request], n=count, pages=len(pages))
        canvas.rect(0, 4 + 19 * row, 10, 10, f"{colour(request)} full", r=2)
        canvas.text(16, 13.5 + 19 * row, text, size=SMALL)


def _pool(canvas: Canvas, one: dict[str, Any], size: int, count: int, top: float) -> None:
    """Each page as its tokens: with KV, held without, in the cache alone, or free."""
    owners = {page: request for request, pages in one["pages"].items() for page in pages}
    cell = (WIDE - 8) / size
    for page in range(count):
        x, y = page % ACROSS * (WIDE + 2), top + page // ACROSS * TALL
        request = owners.get(page)
        written = 0
        if request is not None:
            place = one["pages"][request].index(page)
            written = min(size, max(0, one["cached"][request] - place * size))
            canvas.text(x + 2, y + 9, LETTERS[int(request)], "bold", size=SMALL)
        canvas.text(x + WIDE - 6, y + 9, page, "dim mono", size=SMALL, anchor="end")
        for token in range(size):
            cls = "soft" if page in one["kept"] else "free"
            if request is not None:
                cls = f"{colour(int(request))} {'full' if token < written else 'pale'}"
            canvas.rect(x + token * cell, y + 13, cell - 1.5, 16, cls, r=2)


def _told(word: Words, number: int, one: dict[str, Any], before: dict[str, list[int]]) -> str:
    def who(requests: list[int]) -> str:
        return word("comma").join(LETTERS[request] for request in requests)

    cached = {request: begin for request, begin, _ in one["batch"]}
    new = [request for request in cached if str(request) not in before]
    sizes = {request: len(pages) for request, pages in one["pages"].items()}
    grown = [
        request
        for request in cached
        if request not in new and sizes.get(str(request), 0) > len(before[str(request)])
    ]
    if number == 1:
        said = word("begun", n=number, who=who(new))
    elif one["retracted"]:
        said = word("gave", n=number, who=who(grown), victim=who(one["retracted"]))
    elif new:
        said = word("back", n=number, who=who(new), kept=cached[new[0]])
    elif grown:
        said = word("grown", n=number, who=who(grown))
    else:
        said = word("token", n=number, who=who([*cached]))
    return said + (word("done", who=who(one["done"])) if one["done"] else "")
