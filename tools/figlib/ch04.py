"""Chapter 4: from a prompt to text, and what top-p keeps of a distribution."""

from __future__ import annotations

from . import traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words
from .measure import text_width
from .shapes import tokens


def _shown(piece: str) -> str:
    return piece.replace(" ", "␣").replace("\n", "↵")


@figure("ch04_pipeline")
def pipeline(word: Words) -> Drawing:
    """The example's first prompt, what its pass yields, and the way back to the start."""
    trace = traces.load("ch04_runner")
    canvas = Canvas()
    x, wide, back = 0.0, 326.0, 346.0
    _step(canvas, 1, word("prompt"), 0)
    canvas.box(x, 22, wide, 30, f"“{trace['prompt']}”", "soft", "mono")

    _step(canvas, 2, word("tokens", n=len(trace["ids"])), 76)
    tokens(canvas, x, 98, trace["pieces"], "r1 solid")
    at = float(x)
    for piece, token in zip(trace["pieces"], trace["ids"], strict=True):
        cell = text_width(_shown(piece), SMALL, mono=True) + 10
        canvas.text(at + cell / 2, 138, token, "mono dim", size=SMALL, anchor="middle")
        at += cell + 4

    _step(canvas, 3, word("logits", n=f"{trace['vocab_size']:,}"), 164)
    canvas.text(x, 198, word("logit"), "dim", size=SMALL)
    canvas.text(wide, 198, word("probability"), "dim", size=SMALL, anchor="end")
    best = trace["best"]
    for row, (piece, logit, share) in enumerate(best):
        y = 206 + row * 25
        cls = "hot" if row == 0 else "r1"
        canvas.text(x, y + 15, f"{logit:.1f}", "mono", size=SMALL)
        canvas.text(106, y + 15, _shown(piece), "mono", size=SMALL, anchor="end")
        canvas.rect(114, y + 2, max(1.5, 150 * share), 17, f"{cls} solid", r=2)
        canvas.text(wide, y + 15, f"{100 * share:.1f} %", size=SMALL, anchor="end")
    canvas.text(106, 206 + 4 * 25 + 9, "⋮", "dim", anchor="end")

    below = 336.0
    _step(canvas, 4, word("sample"), below)
    end = tokens(canvas, x, below + 22, [trace["text"][0]], "hot solid")
    canvas.text(end + 10, below + 38, f"id {trace['chosen']}", "mono dim", size=SMALL)
    canvas.arrow(
        [(end + 80, below + 34), (back, below + 34), (back, 110), (wide + 2, 110)], "path hot"
    )
    canvas.text(back - 8, below + 28, word("append"), "hot", size=SMALL, anchor="end")

    _step(canvas, 5, word("text"), below + 72)
    canvas.box(x, below + 94, wide, 30, f"“{''.join(trace['text'])} …”", "soft", "mono")
    return Drawing([Frame(canvas)])


def _step(canvas: Canvas, number: int, name: str, y: float) -> None:
    canvas.circle(9, y + 9, 9, "head")
    canvas.text(9, y + 13.3, number, "on bold", size=SMALL, anchor="middle")
    canvas.text(25, y + 14, name, "bold")


@figure("ch04_top_p")
def top_p(word: Words) -> Drawing:
    """A real distribution, its best tokens first: where the sum reaches top_p, the rest goes."""
    trace = traces.load("ch04_runner")
    cut = trace["top_p"]
    shown, count = 9, cut["count"]
    canvas = Canvas()
    canvas.text(0, 13, f"“{cut['prompt']}”", "mono bold", size=SMALL)
    settings = f"temperature = {cut['temperature']}   top_p = {cut['top_p']}"
    canvas.text(0, 31, settings, "mono dim", size=SMALL)
    canvas.text(canvas.width, 52, word("sum"), "dim", size=SMALL, anchor="end")
    left, wide = 106.0, 142.0
    most = cut["best"][0][1]
    y = 60.0

    def line(label: str, share: float, total: float | None, cls: str, mono: bool) -> None:
        font = "mono" if mono else ""
        canvas.text(left - 8, y + 15, label, font, size=SMALL, anchor="end")
        part = max(1.5, wide * share / most)
        canvas.rect(left, y + 2, part, 17, cls, r=2)
        at = left + part + 6
        canvas.text(at, y + 15, f"{100 * share:.1f} %", size=SMALL)
        if total is not None:
            canvas.text(
                canvas.width, y + 15, f"{100 * total:.0f} %", "bold", size=SMALL, anchor="end"
            )

    for piece, share, total in cut["best"][:shown]:
        line(_shown(piece), share, total, "r1 solid", True)
        y += 23
    before, reached = cut["best"][shown - 1][2], cut["best"][count - 1][2]
    line(word("more", n=count - shown), reached - before, reached, "r1 solid", False)
    y += 29
    canvas.line(0, y - 2, canvas.width, y - 2, "dash")
    canvas.text(canvas.width, y + 14, word("cut"), "hot bold", size=SMALL, anchor="end")
    y += 20
    line(word("gone", n=f"{trace['vocab_size'] - count:,}"), 1 - reached, None, "r0 edge", False)
    canvas.hatch(left, y + 2, wide * (1 - reached) / most, 17, "r0")
    return Drawing(
        [Frame(canvas)], [("r1 solid", word("kept")), ("r0 edge+hatch", word("dropped"))]
    )
