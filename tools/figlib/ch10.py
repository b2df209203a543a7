"""Chapter 10: the states of a request, static and continuous batches, and waiting for a prefix."""

from __future__ import annotations

from typing import Any

from . import traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words
from .shapes import colour

LETTERS = "abcdefgh"
LEFT, STEP, CELL = 20.0, 16.0, 15.0  # of a timeline: where its cells begin, and how wide they are


def _trace() -> dict[str, Any]:
    return traces.load("ch10_scheduler")


@figure("ch10_states")
def states(word: Words) -> Drawing:
    """The five states, what a request holds in each, and the reasons by which it ends."""
    canvas = Canvas()
    wide, high, top, low, rail = 96.0, 46.0, 48.0, 164.0, 124.0
    for x, name, cls in ((1, "WAITING", "r0"), (132, "PREFILL", "r2"), (263, "DECODE", "r1")):
        canvas.box(x, top, wide, high, [name, word(name.lower())], f"{cls} solid", size=SMALL)
    for x, name in ((97, "admitted"), (228, "first")):
        canvas.arrow([(x, top + 23), (x + 33, top + 23)])
        canvas.text(x + 17, top - 7, word(name), size=SMALL, anchor="middle")
    canvas.path(f"M346 {top}v-11a7 7 0 0 0 -7 -7h-20a7 7 0 0 0 -7 7", "line")
    canvas.arrow([(312, top - 11), (312, top - 1)])
    canvas.text(359, 20, word("each_step"), size=SMALL, anchor="end")

    canvas.box(200, low, 159, high, ["FINISHED", "stop · length"], "r3 solid", size=SMALL)
    canvas.box(1, low, 159, high, ["ABORTED", "abort · timeout · error"], "r5 solid", size=SMALL)
    canvas.arrow([(347, top + high), (347, low - 2)])
    canvas.arrow([(212, top + high), (212, low - 2)])
    canvas.text(218, low - 10, word("one_token"), size=SMALL)
    canvas.arrow([(49, top + high), (49, low - 2)], "path r5 dashed")
    canvas.path(f"M150 {top + high}V{rail}H49M300 {top + high}V{rail}H150", "path r5 dashed")
    canvas.text(56, low - 10, word("outside"), size=SMALL)
    return Drawing([Frame(canvas)])


@figure("ch10_timelines")
def timelines(word: Words) -> Drawing:
    """The example's eight requests in static batches, and as the scheduler serves them."""
    trace, frames = _trace(), []
    for name in ("static", "continuous"):
        canvas = Canvas()
        _timeline(canvas, trace[name], len(trace[name]))
        rows = sum(len(one["batch"]) for one in trace[name]) / len(trace[name])
        frames.append(Frame(canvas, word(name, passes=len(trace[name]), rows=f"{rows:.1f}")))
    highest = max(frame.canvas.height for frame in frames)
    for frame in frames:
        frame.canvas.grow(highest)
    return Drawing(frames, _legend(word), columns=2)


def _legend(word: Words) -> list[tuple[str, str]]:
    return [
        ("r1 strong", word("prefill")),
        ("r1 solid", word("decode")),
        ("free", word("queue")),
        ("hot solid", word("stall")),
    ]


def _timeline(canvas: Canvas, passes: list[dict[str, Any]], count: int) -> None:
    """A row per request and a column per pass, of which the first `count` have been."""
    mine = _columns(passes)
    for column in range(4, len(passes), 5):
        x = LEFT + column * STEP + CELL / 2
        canvas.text(x, 12, column + 1, "dim mono", size=SMALL, anchor="middle")
    for request, columns in mine.items():
        y = 18.0 + request * 19
        canvas.text(10, y + 12, LETTERS[request], "bold", anchor="middle")
        for column in range(min(columns[-1] + 1, count)):
            x = LEFT + column * STEP
            if column in columns:
                kind = "strong" if column == columns[0] else "solid"
                canvas.rect(x, y, CELL, CELL, f"{colour(request)} {kind}", r=2)
            elif column < columns[0]:
                canvas.rect(x + 4, y + 4, CELL - 8, CELL - 8, "free", r=2)
            else:
                canvas.rect(x + 3, y + 3, CELL - 6, CELL - 6, "hot solid", r=2)


def _columns(passes: list[dict[str, Any]]) -> dict[int, list[int]]:
    """Request -> the passes that it was in."""
    found: dict[int, list[int]] = {}
    for column, one in enumerate(passes):
        for request, *_ in one["batch"]:
            found.setdefault(request, []).append(column)
    return dict(sorted(found.items()))


@figure("live_schedule")
def live_schedule(word: Words) -> Drawing:
    """Pass by pass: the timeline so far, and below it the batch."""
    trace = _trace()
    passes = trace["continuous"]
    mine, frames = _columns(passes), []
    longest = max(end for one in passes for _, _, end in one["batch"])
    for number, one in enumerate(passes):
        canvas = Canvas()
        _timeline(canvas, passes, number + 1)
        x = LEFT + number * STEP
        canvas.rect(x - 1.5, 15, CELL + 3, len(mine) * 19 + 3, "ring")
        held = [r for r, at in mine.items() if at[0] <= number <= at[-1]]
        batch = {request: (cached, end) for request, cached, end in one["batch"]}
        _batch(canvas, word, 18.0 + len(mine) * 19 + 22, held, batch, longest)
        frames.append(Frame(canvas, _told(word, number, one, held, mine)))
    highest = max(frame.canvas.height for frame in frames)
    for frame in frames:
        frame.canvas.grow(highest)
    legend = [*_legend(word), ("r1 pale", word("cached")), ("r1 full", word("computed"))]
    return Drawing(frames, legend, steps=True)


def _batch(
    canvas: Canvas,
    word: Words,
    y: float,
    held: list[int],
    batch: dict[int, tuple[int, int]],
    longest: int,
) -> None:
    """Whoever holds a row: the tokens whose KV is there, and those that this pass computes."""
    total = sum(end - cached for cached, end in batch.values())
    canvas.text(0, y, word("batch", n=len(batch), total=total), size=SMALL)
    wide = (canvas.width - LEFT) / longest
    for number, request in enumerate(held):
        top = y + 9 + number * 21
        canvas.text(10, top + 13, LETTERS[request], "bold", anchor="middle")
        if request not in batch:
            canvas.rect(LEFT, top + 3, 9, 9, "hot solid", r=2)
            canvas.text(LEFT + 16, top + 13, word("stands"), size=SMALL)
            continue
        cached, end = batch[request]
        for token in range(end):
            kind = "pale" if token < cached else "full"
            canvas.rect(
                LEFT + token * wide, top, wide - 1.2, 17, f"{colour(request)} {kind}", r=1.5
            )


def _told(
    word: Words, number: int, one: dict[str, Any], held: list[int], mine: dict[int, list[int]]
) -> str:
    def letters(requests: list[int]) -> str:
        return word("comma").join(LETTERS[request] for request in requests)

    inside = [request for request, *_ in one["batch"]]
    still = [request for request in held if request not in inside]
    gone = [request for request, at in mine.items() if at[-1] == number]
    kind = "prefills" if one["phase"] == "prefill" else "decodes"
    said = word(kind, n=number + 1, who=letters(inside))
    if still:
        said += word("still", who=letters(still))
    if gone:
        said += word("gone", who=letters(gone))
    return said


@figure("ch10_sharing")
def sharing(word: Words) -> Drawing:
    """Four prompts with one beginning: all at once, or three of them a step later."""
    trace, frames = _trace(), []
    for name in ("they_do_not", "they_wait"):
        canvas = Canvas()
        longest = max(end for one in trace[name] for _, _, end in one["batch"])
        scale, y = (canvas.width - LEFT - 36) / longest, 0.0
        for number, one in enumerate(trace[name], 1):
            canvas.text(0, y + 13, word("pass", n=number), "dim", size=SMALL)
            y += 20
            for request, cached, end in one["batch"]:
                canvas.text(10, y + 14, LETTERS[request], "bold", anchor="middle")
                canvas.rect(LEFT, y, max(cached * scale, 0.1), 18, f"{colour(request)} pale", r=1)
                x = LEFT + cached * scale
                canvas.rect(x, y, (end - cached) * scale, 18, f"{colour(request)} full", r=1)
                canvas.text(canvas.width, y + 14, end - cached, "mono", size=SMALL, anchor="end")
                y += 22
            y += 6
        computed = sum(end - cached for one in trace[name] for _, cached, end in one["batch"])
        frames.append(Frame(canvas, word(name, passes=len(trace[name]), n=computed)))
    highest = max(frame.canvas.height for frame in frames)
    for frame in frames:
        frame.canvas.grow(highest)
    return Drawing(frames, [("r1 pale", word("shared")), ("r1 full", word("computed"))], columns=2)
