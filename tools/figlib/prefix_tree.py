"""The tree of prefixes as a picture, with the pool of pages above it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .canvas import SMALL, Canvas
from .labels import Words
from .shapes import colour

Event = dict[str, Any]
WIDE, HIGH, DEEP = 80.0, 36.0, 20.0  # a page of the tree: two words and a number; the indent
SPACE = 10.0
ROOT = 78.0  # where the root lies, below the pool


@dataclass(frozen=True)
class Look:
    """What a picture of the tree points out."""

    ringed: set[int] = field(default_factory=set)  # pages
    order: bool = False  # in which order nodes would be evicted


def _owners(events: list[Event]) -> list[dict[int, int]]:
    """For each event: page -> the request (from 1 on) that computed what lies there."""
    found: list[dict[int, int]] = []
    owners: dict[int, int] = {}
    for event in events:
        if event["kind"] == "allocate":
            request = int(event["request"])
            owners = {**owners, **dict.fromkeys(event["own"][str(request)], request)}
        found.append(owners)
    return found


def picture(word: Words, trace: Event, number: int, look: Look) -> Canvas:
    """The tree after event `number`, and above it the pool."""
    event = trace["events"][number]
    owners = _owners(trace["events"])[number]
    canvas = Canvas()
    _pool(canvas, word, trace["num_pages"], event, owners, look)
    canvas.circle(9, ROOT, 4, "frame")
    canvas.text(20, ROOT + 4.5, word("root"), "dim", size=SMALL)
    _subtree(canvas, word, event, owners, look, 0, 0, ROOT + 16)
    return canvas


def _subtree(
    canvas: Canvas,
    word: Words,
    event: Event,
    owners: dict[int, int],
    look: Look,
    parent: int,
    depth: int,
    y: float,
) -> float:
    """The children of a node, each followed by its own; returns where the next node may begin."""
    trunk = 9 + depth * DEEP
    start = y - SPACE if depth else ROOT + 4
    for node in event["nodes"]:
        if node["parent"] != parent:
            continue
        middle = y + HIGH / 2
        canvas.path(f"M{trunk} {start}V{middle}H{trunk + 11}", "line")
        _node(canvas, word, event, owners, look, node, trunk + 12, y)
        y = _subtree(canvas, word, event, owners, look, node["id"], depth + 1, y + HIGH + SPACE)
    return y


def _node(
    canvas: Canvas,
    word: Words,
    event: Event,
    owners: dict[int, int],
    look: Look,
    node: Event,
    x: float,
    y: float,
) -> None:
    for page, words in zip(node["pages"], node["words"], strict=True):
        cls = colour(owners[page] - 1)
        canvas.rect(x, y, WIDE, HIGH, f"{cls} solid", r=2, key=f"n{page}")
        if page in look.ringed:
            canvas.rect(x - 1, y - 1, WIDE + 2, HIGH + 2, "ring", r=3)
        canvas.text(
            x + WIDE / 2, y + 15, " ".join(words), size=SMALL, anchor="middle", key=f"w{page}"
        )
        label = word("page_n", n=page)
        canvas.text(x + WIDE / 2, y + 30, label, "dim", size=SMALL, anchor="middle", key=f"m{page}")
        x += WIDE
    _locks(canvas, event, node, x + 6, y + 4)
    if look.order and node["id"] in event["oldest"]:
        place = event["oldest"].index(node["id"]) + 1
        canvas.text(x + 6, y + 23, word("order_n", n=place), "hot bold", size=SMALL)


def _locks(canvas: Canvas, event: Event, node: Event, x: float, y: float) -> None:
    """A padlock for each lock, in the colour of the request that holds it where that is known."""
    holders = sorted(int(n) for n, path in event["paths"].items() if node["id"] in path)
    for index in range(node["locks"]):
        known = len(holders) == node["locks"]
        cls = f"lock {colour(holders[index] - 1)}" if known else "lock"
        canvas.lock(x + index * 15, y + 7, cls)


def _pool(
    canvas: Canvas,
    word: Words,
    count: int,
    event: Event,
    owners: dict[int, int],
    look: Look,
) -> None:
    """Every page as a square: free, the tree's, or a request's own (hatched, with its number)."""
    canvas.text(0, 13, word("pool"), "dim", size=SMALL)
    y, side, step = 22.0, 32.0, 39.5
    own = {page: int(n) for n, pages in event["own"].items() for page in pages}
    in_tree = {page for node in event["nodes"] for page in node["pages"]}
    given = in_tree | own.keys()  # what has just been evicted is nobody's, and free in a moment
    for page in range(count):
        x = 1 + page * step
        if page in event["free"] or page not in given:
            canvas.rect(x, y, side, side, "free", key=f"q{page}")
        else:
            cls = colour(owners[page] - 1)
            if page not in in_tree:
                canvas.rect(x, y, side, side, f"{cls} edge", key=f"q{page}")
                canvas.hatch(x, y, side, side, cls)
                canvas.rect(x + 8, y + 7, 16, 18, f"{cls} chip", r=3)
            else:
                canvas.rect(x, y, side, side, f"{cls} solid", key=f"q{page}")
        if page in look.ringed:
            canvas.rect(x - 1, y - 1, side + 2, side + 2, "ring")
        canvas.text(x + side / 2, y + 21, page, "bold", anchor="middle")
