"""Chapter 12: the budget of a step, and a long prompt that comes while others run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import data, traces
from .canvas import SMALL, Canvas
from .charts import number
from .drawing import Drawing, Frame, figure
from .labels import Words
from .shapes import colour

LETTERS = "abcL"
LONG, ARRIVAL = 3, 3  # the long prompt's number, and the pass before which it comes


# --- whose tokens a step computes -------------------------------------------------------------

# Letter -> how many of its tokens, in steps of eight: a and b decode, L and d bring prompts.
STEPS = (
    [("a", 1), ("b", 1), ("L", 6)],
    [("a", 1), ("b", 1), ("L", 6)],
    [("a", 1), ("b", 1), ("L", 2), ("d", 4)],
    [("a", 1), ("b", 1), ("L", 1), ("d", 1)],
)
PROMPTS = {"L": 14, "d": 5}


@figure("ch12_budget")
def budget(word: Words) -> Drawing:
    """Four steps with a budget of eight tokens; a ring where a token is sampled from."""
    canvas, left, side, step = Canvas(), 66.0, 28.0, 34.0
    most = sum(count for _, count in STEPS[0])
    done = dict.fromkeys("abLd", 0)
    for row, batch in enumerate(STEPS):
        y = 8.0 + row * (side + 14)
        canvas.text(0, y + 19, word("step", n=row + 1), size=SMALL)
        x = left
        for letter, count in batch:
            kind = "solid" if letter in "ab" or done[letter] >= PROMPTS[letter] else "strong"
            cls = colour("abLd".index(letter))
            done[letter] += count
            yields = done[letter] >= PROMPTS.get(letter, 0)
            for place in range(count):
                canvas.rect(x, y, side, side, f"{cls} {kind}")
                text = "bold on" if kind == "strong" else "bold"
                canvas.text(x + side / 2, y + 19, letter, text, anchor="middle")
                if yields and place == count - 1:
                    canvas.rect(x - 2.5, y - 2.5, side + 5, side + 5, "ring", r=4)
                x += step
        for _ in range(most - sum(count for _, count in batch)):
            canvas.rect(x, y, side, side, "free")
            x += step
    legend = [
        ("r1 solid", word("decode")),
        ("r3 strong", word("prompt")),
        ("ring", word("sampled")),
        ("free", word("left")),
    ]
    return Drawing([Frame(canvas)], legend)


# --- the example's two runs -------------------------------------------------------------------


@figure("ch12_steps")
def steps(word: Words) -> Drawing:
    """How many tokens each step of the example computed, without a budget and with one."""
    trace, frames, floor = traces.load("ch12_chunked_prefill"), [], 216.0
    scale = 190.0 / max(_count(one) for one in trace["no_budget"])
    limit = max(_count(one) for one in trace["budget"])
    for name in ("no_budget", "budget"):
        canvas = Canvas()
        wide = (canvas.width - 36) / len(trace[name])
        if name == "budget":
            y = floor - max(sum(_heights(one, scale)) for one in trace[name])
            canvas.line(30, y, canvas.width, y, "dash")
            canvas.text(26, y + 4, limit, "mono", size=SMALL, anchor="end")
        for column, one in enumerate(trace[name]):
            x, y = 36 + column * wide, floor
            heights = _heights(one, scale)
            for (request, cached, end), part in zip(one["batch"], heights, strict=True):
                y -= part
                kind = "strong" if end - cached > 1 else "solid"
                canvas.rect(x, y, wide - 5, part, f"{colour(request)} {kind}", r=1)
            if _count(one) > limit / 2:
                at = x + (wide - 5) / 2
                canvas.text(at, y - 5, _count(one), "mono", size=SMALL, anchor="middle")
            at = x + (wide - 5) / 2
            canvas.text(at, floor + 15, column + 1, "dim mono", size=SMALL, anchor="middle")
        parts = [
            one
            for one in trace[name]
            for n, cached, end in one["batch"]
            if end > cached + 1 and n == LONG
        ]
        frames.append(Frame(canvas, word(name, n=limit, parts=len(parts))))
    legend = [(f"{colour(n)} strong", word("of", who=letter)) for n, letter in enumerate(LETTERS)]
    return Drawing(frames, legend, columns=2)


def _heights(one: dict[str, Any], scale: float) -> list[float]:
    """A token alone would be too thin to be seen."""
    return [max(3.0, scale * (end - cached)) for _, cached, end in one["batch"]]


def _count(one: dict[str, Any]) -> int:
    return sum(end - cached for _, cached, end in one["batch"])


# --- three schedulers -------------------------------------------------------------------------


@dataclass(frozen=True)
class Pass:
    """A pass of a run: from when to when, and what it computed: (request, from, to)."""

    start: float
    end: float
    batch: list[list[int]]


LANE, ROW, LEFT = 128.0, 17.0, 18.0


@figure("live_chunks")
def live_chunks(word: Words) -> Drawing:
    """The same arrivals under three schedulers, all on one clock."""
    lanes = {
        "static": [*_timed(traces.load("ch12_static")["passes"])],
        "continuous": [*_timed(traces.load("ch12_continuous")["passes"])],
        "chunked": [*_timed(traces.load("ch12_chunked_prefill")["budget"])],
    }
    whole = max(passes[-1].end for passes in lanes.values())
    frames = []
    for now in [*_moments(lanes.values(), whole), whole]:
        canvas, said = Canvas(), []
        for place, (name, passes) in enumerate(lanes.items()):
            _lane(canvas, word, place * LANE, word(name), passes, now, whole)
            said.append(word("lane", name=word(name), what=_told(word, passes, now)))
        frames.append(Frame(canvas, "".join(said)))
    legend = [
        ("r1 solid", word("decode")),
        ("r4 strong", word("prompt")),
        ("hot solid", word("stall")),
        ("free", word("queue")),
    ]
    return Drawing(frames, legend, steps=True)


def _timed(passes: Sequence[dict[str, Any]]) -> Iterator[Pass]:
    start = 0.0
    for one in passes:
        yield Pass(start, start + one["ms"], one["batch"])
        start += one["ms"]


def _moments(lanes: Any, whole: float) -> Iterator[float]:
    """Just after the beginning of each pass, but not again where another has just begun."""
    last = -whole
    for moment in sorted(one.start for passes in lanes for one in passes):
        if moment > last + whole / 40:
            yield moment + whole / 80
            last = moment


def _lane(
    canvas: Canvas,
    word: Words,
    top: float,
    name: str,
    passes: list[Pass],
    now: float,
    whole: float,
) -> None:
    """A row per request up to `now`, and under it what the pass of that moment computes."""
    scale = (canvas.width - LEFT) / whole
    canvas.text(0, top + 12, name, "bold", size=SMALL)
    batch = _batch_at(passes, now)
    for request, letter in enumerate(LETTERS):
        y = top + 20 + request * ROW
        canvas.text(8, y + 10, letter, "bold", size=SMALL, anchor="middle")
        begun = passes[ARRIVAL].start if request == LONG else 0.0
        for kind, start, end in _spans(passes, request, begun):
            if start < now:
                x, wide = LEFT + start * scale, (min(end, now) - start) * scale
                cls = kind if kind in ("free", "hot solid") else f"{colour(request)} {kind}"
                low = 4.0 if kind in ("free", "hot solid") else 0.0
                canvas.rect(x, y + low, max(wide - 1, 0.6), 13 - 2 * low, cls, r=1)
    x = LEFT + now * scale
    canvas.line(x, top + 16, x, top + 20 + len(LETTERS) * ROW, "line")
    y = top + 20 + len(LETTERS) * ROW + 14
    counts = {LETTERS[request]: end - cached for request, cached, end in batch}
    shown = " + ".join(f"{letter} {count}" for letter, count in counts.items())
    canvas.text(LEFT, y, word("now", what=shown) if counts else word("over"), size=SMALL)
    canvas.grow(top + LANE - 8)


def _batch_at(passes: list[Pass], now: float) -> list[list[int]]:
    return next((one.batch for one in passes if one.start <= now < one.end), [])


def _spans(passes: list[Pass], request: int, begun: float) -> Iterator[tuple[str, float, float]]:
    """What happens to a request and when: it waits, is computed, stands still."""
    mine = [n for n, one in enumerate(passes) if any(r == request for r, *_ in one.batch)]
    if passes[mine[0]].start > begun:
        yield "free", begun, passes[mine[0]].start
    for place in range(mine[0], mine[-1] + 1):
        one = passes[place]
        computed = {r: end - cached for r, cached, end in one.batch}
        if request not in computed:
            yield "hot solid", one.start, one.end
        else:
            yield "strong" if computed[request] > 1 else "solid", one.start, one.end


def _told(word: Words, passes: list[Pass], now: float) -> str:
    batch = _batch_at(passes, now)
    if not batch:
        return word("done")
    here = passes.index(next(one for one in passes if one.start <= now < one.end))
    inside = {request: end - cached for request, cached, end in batch}
    prompts = [(LETTERS[r], n) for r, n in inside.items() if n > 1]
    decodes = [LETTERS[r] for r, n in inside.items() if n == 1]
    said = []
    if decodes:
        said.append(word("token_each", who=word("comma").join(decodes)))
    said += [word("piece", who=letter, n=count) for letter, count in prompts]
    firsts = {r: n for n, one in reversed([*enumerate(passes)]) for r, *_ in one.batch}
    lasts = {r: n for n, one in enumerate(passes) for r, *_ in one.batch}
    still = [
        LETTERS[r] for r in range(len(LETTERS)) if firsts[r] < here < lasts[r] and r not in inside
    ]
    if still:
        said.append(word("still", who=word("comma").join(still)))
    if ARRIVAL <= here < firsts[LONG]:
        said.append(word("waits", who=LETTERS[LONG]))
    return word("semicolon").join(said)


# --- what was measured ------------------------------------------------------------------------


@figure("ch12_gaps")
def gaps(word: Words) -> Drawing:
    """By budget: the longest gap of those who run, and the first token of the long prompt."""
    return _bars(word, "ch12_gaps", {"worst_ms": "r5 strong", "ttft_ms": "r1 solid"})


@figure("ch12_rates")
def rates(word: Words) -> Drawing:
    """By budget: how fast prompts are computed, many that come together and a single long one."""
    return _bars(word, "ch12_prefill", {"many": "r2 strong", "one": "r1 solid"})


def _bars(word: Words, record: str, series: dict[str, str]) -> Drawing:
    """Two bars per budget, each with its figure."""
    canvas, left, wide = Canvas(), 66.0, 236.0
    rows = data.bench_rows(record)
    most = max(row[name] for row in rows for name in series)
    for place, row in enumerate(rows):
        y = 4.0 + place * 42
        shown = word("none") if row["budget"] is None else row["budget"]
        canvas.text(left - 8, y + 19, shown, "mono", size=SMALL, anchor="end")
        for n, (name, cls) in enumerate(series.items()):
            length = wide * row[name] / most
            canvas.rect(left, y + n * 16, max(length, 1.5), 13, cls, r=2)
            canvas.text(left + length + 5, y + n * 16 + 11, number(row[name]), "mono", size=SMALL)
    return Drawing([Frame(canvas)], [(cls, word(name)) for name, cls in series.items()])
