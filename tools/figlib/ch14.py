"""Chapter 14: two lanes in turn and overlapped, and the passes around a request's end."""

from __future__ import annotations

from typing import Any

from . import traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words
from .shapes import colour, page

LETTERS = "ABC"
HOST, DEVICE, HIGH = 20.0, 66.0, 26.0  # the tops of the lanes, and their height
CELL, ROW = 19.0, 24.0  # a token, and the line of a request


def _trace() -> dict[str, Any]:
    return traces.load("ch14_overlap")


# --- two lanes --------------------------------------------------------------------------------


@figure("ch14_lanes")
def lanes(word: Words) -> Drawing:
    """What the host and the device did in the same time; a pass has a colour in both lanes."""
    trace, frames = _trace(), []
    span = min(trace[name]["passes"][-1]["times"][0] for name in ("in_turn", "overlapped"))
    for name in ("in_turn", "overlapped"):
        run, canvas = trace[name], Canvas()
        scale = canvas.width / span
        canvas.text(0, HOST - 7, word("host"), size=SMALL)
        canvas.text(0, DEVICE - 7, word("device"), size=SMALL)
        canvas.rect(0, DEVICE, canvas.width, HIGH, "free", r=0)
        for step in run["steps"]:
            begin, since, until, end = step["times"]
            _span(canvas, HOST, (begin, since), span, f"{colour(step['launches'])} full")
            _span(canvas, HOST, (since, until), span, "free", high=HIGH / 2)
            _span(canvas, HOST, (until, end), span, f"{colour(step['takes'])} edge")
        for one in run["passes"]:
            left, wide = _span(canvas, DEVICE, one["times"], span, f"{colour(one['pass'])} solid")
            if wide > 20:
                number = one["pass"] - run["passes"][0]["pass"] + 1
                canvas.text(left + wide / 2, DEVICE + 17, number, "bold", anchor="middle")
        for at in range(0, int(span) + 1, 3):
            x = at * scale
            canvas.line(x, DEVICE + HIGH + 3, x, DEVICE + HIGH + 7)
            if at and x < canvas.width - 12:
                y = DEVICE + HIGH + 19
                canvas.text(x, y, at, "dim mono", size=SMALL, anchor="middle")
        canvas.text(0, DEVICE + HIGH + 19, "ms", "dim mono", size=SMALL)
        shown = [(max(a, 0), min(b, span)) for a, b in (one["times"] for one in run["passes"])]
        busy = sum(b - a for a, b in shown if b > a)
        frames.append(Frame(canvas, word(name, share=f"{busy / span:.0%}")))
    legend = [
        ("r1 full", word("prepare")),
        ("free", word("wait")),
        ("r1 edge", word("take_over")),
        ("r1 solid", word("compute")),
    ]
    return Drawing(frames, legend, columns=2)


def _span(
    canvas: Canvas,
    top: float,
    times: list[float] | tuple[float, float],
    span: float,
    cls: str,
    high: float = HIGH,
) -> tuple[float, float]:
    """A stretch of time in a lane, cut off at both ends; returns its left side and width."""
    begin, end = (min(max(time, 0), span) * canvas.width / span for time in times)
    if end - begin > 0.3:
        canvas.rect(begin, top + (HIGH - high) / 2, end - begin, high, cls, r=1)
    return begin, end - begin


# --- the last passes of a request -------------------------------------------------------------


@figure("live_flight")
def live_flight(word: Words) -> Drawing:
    """After each launch and each result: tokens, the passes in flight, rows and pages."""
    events, frames = _trace()["flight"], []
    first = 1 + max(
        n for n, one in enumerate(events) if one["event"] == "result" and _is_early(one)
    )
    last = next(n for n, one in enumerate(events) if one["requests"]["2"]["row"] is not None)
    before = events[first - 1]
    for one in events[first : last + 1]:
        canvas = Canvas()
        _passes(canvas, word, one)
        _tokens(canvas, one, 46.0)
        _held(canvas, word, one, 46.0 + 3 * ROW + 18)
        frames.append(Frame(canvas, _told(word, one, before)))
        before = one
    legend = [
        ("r1 pale", word("prompt")),
        ("r1 full", word("known")),
        ("r1 edge", word("on_its_way")),
        ("hot solid", word("end")),
        ("r1 edge+hatch", word("for_nothing")),
        ("soft", word("kept")),
    ]
    return Drawing(frames, legend, steps=True)


def _is_early(one: dict[str, Any]) -> bool:
    """Whether request A has just got its second token: the one that ends it comes next."""
    mine = one["requests"]["0"]
    return bool(one["event"] == "result" and mine["known"] == mine["prompt"] + 2)


def _passes(canvas: Canvas, word: Words, one: dict[str, Any]) -> None:
    x = canvas.text(0, 16, word("flight"), size=SMALL) + 10
    newest = one["pass"] if one["event"] == "launch" else one["pass"] + len(one["flight"])
    for number, batch in enumerate(one["flight"], newest - len(one["flight"]) + 1):
        wide = 34 + 18 * len(batch)
        canvas.rect(x, 1, wide, 24, "soft")
        canvas.text(x + 7, 17, f"{number}:", "mono", size=SMALL)
        for place, request in enumerate(batch):
            left = x + 28 + 18 * place
            canvas.rect(left, 5, 15, 16, f"{colour(request)} solid", r=2)
            canvas.text(left + 7.5, 17, LETTERS[request], "bold", size=SMALL, anchor="middle")
        x += wide + 8


def _tokens(canvas: Canvas, one: dict[str, Any], top: float) -> None:
    """A line per request: its prompt, the tokens that are known, and those on their way."""
    for request, mine in sorted(one["requests"].items()):
        index = int(request)
        y = top + index * ROW
        canvas.text(7, y + 13, LETTERS[index], "bold", anchor="middle")
        flying = sum(index in batch for batch in one["flight"])
        for token in range(mine["known"] + flying):
            x, cls = 22 + token * CELL, colour(index)
            if token >= mine["known"]:
                canvas.rect(x, y, CELL - 2, 17, f"{cls} edge", r=2)
                if mine["ended"]:
                    canvas.hatch(x, y, CELL - 2, 17, cls)
            elif token == mine["known"] - 1 and mine["ended"] == "stop":
                canvas.rect(x, y, CELL - 2, 17, "hot solid", r=2)
            else:
                kind = "pale" if token < mine["prompt"] else "full"
                canvas.rect(x, y, CELL - 2, 17, f"{cls} {kind}", r=2)


def _held(canvas: Canvas, word: Words, one: dict[str, Any], top: float) -> None:
    """The two rows of the tables and the nine pages, each with the letter of its owner."""
    rows = {mine["row"]: int(r) for r, mine in one["requests"].items() if mine["pages"]}
    pages = {p: int(r) for r, mine in one["requests"].items() for p in mine["pages"]}
    for x, name, owners, count in ((0.0, "rows", rows, 2), (84.0, "pages", pages, 9)):
        canvas.text(x, top, word(name), size=SMALL)
        for place in range(count):
            owner = owners.get(place)
            letter, cls = ("", "") if owner is None else (LETTERS[owner], colour(owner))
            left = x + place * 30
            page(canvas, left, top + 7, 27, letter, cls)
            if owners is pages and place in one["kept"]:
                canvas.rect(left, top + 7, 27, 27, "soft")
            if owner is not None and one["requests"][str(owner)]["ended"]:
                canvas.hatch(left, top + 7, 27, 27, cls)


def _told(word: Words, one: dict[str, Any], before: dict[str, Any]) -> str:
    def who(requests: list[int]) -> str:
        return word("comma").join(LETTERS[request] for request in requests)

    if one["event"] == "launch":
        said = word("launched", n=one["pass"], who=who(one["who"]))
        held = [int(r) for r, mine in one["requests"].items() if mine["ended"] and mine["pages"]]
        new = [r for r in one["who"] if not before["requests"][str(r)]["pages"]]
        if held:
            said += word("without", who=who(held))
        return said + (word("in_its_row", who=who(new)) if new else "")
    said = word("taken", n=one["pass"])
    ended, thrown = [], []
    for request in one["who"]:
        was, mine = before["requests"][str(request)], one["requests"][str(request)]
        if was["ended"]:
            thrown.append(request)
        elif mine["ended"] == "stop":
            ended.append(request)
    if ended:
        return said + word("has_ended", who=who(ended))
    return said + (
        word("thrown", who=who(thrown)) if thrown else word("tokens", who=who(one["who"]))
    )
