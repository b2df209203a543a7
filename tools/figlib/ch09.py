"""Chapter 9: three filters as thresholds, and random numbers without a state."""

from __future__ import annotations

import json
from html import escape

from . import traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words

SHOWN = 12
LEFT, WIDE, HIGH = 96.0, 210.0, 21.0


@figure("ch09_thresholds")
def thresholds(word: Words) -> Drawing:
    """One distribution, and for each filter how far down it reaches."""
    trace = traces.load("ch09_sampler")
    best, canvas = trace["best"][:SHOWN], Canvas()
    canvas.text(0, 13, f"“{trace['prompt']}”", "mono bold", size=SMALL)
    top = 24.0
    for row, (piece, share) in enumerate(best):
        y = top + row * HIGH
        canvas.text(LEFT - 8, y + 14, piece.replace(" ", "␣"), "mono", size=SMALL, anchor="end")
        canvas.rect(LEFT, y + 2, max(1.5, WIDE * share / best[0][1]), 15, "r1 solid", r=2)
    canvas.text(LEFT - 8, top + SHOWN * HIGH + 9, "⋮", "dim", anchor="end")
    below = 0  # lines that lie further down than what is shown
    for name, count in sorted(trace["kept"].items(), key=lambda one: int(one[1])):
        below += count > SHOWN
        y = top + (SHOWN + below if count > SHOWN else count) * HIGH
        canvas.line(LEFT, y, canvas.width, y, "dash")
        label = f"{name} = {trace['filters'][name]}: {word('kept', n=count)}"
        canvas.text(canvas.width, y - 4, label, "hot bold", size=SMALL, anchor="end")
    canvas.grow(top + (SHOWN + below) * HIGH + 4)
    return Drawing([Frame(canvas)])


@figure("ch09_randomness")
def randomness(word: Words) -> Drawing:
    """The numbers of two seeds; drawing two tokens again reads the same places."""
    numbers, canvas = traces.load("ch09_sampler")["numbers"], Canvas()
    side, step, left, again = 46.0, 52.0, 66.0, (3, 4)
    canvas.text(0, 13, word("index"), "dim", size=SMALL)
    for index in range(5):
        canvas.text(
            left + index * step + side / 2, 13, index, "mono dim", size=SMALL, anchor="middle"
        )
    for row, (seed, values) in enumerate(numbers.items()):
        y = 22.0 + row * 36
        canvas.text(0, y + 19, word("seed", n=seed), size=SMALL)
        for index, value in enumerate(values):
            x = left + index * step
            canvas.rect(x, y, side, 28, f"r{row + 1} solid")
            canvas.text(x + side / 2, y + 18, f"{value:.3f}", "mono", size=SMALL, anchor="middle")
    y = 22.0 + len(numbers) * 36 + 14
    canvas.text(0, y + 19, word("again"), size=SMALL)
    for index in again:
        x = left + index * step
        value = numbers["1"][index]
        canvas.rect(x, y, side, 28, "hot solid")
        canvas.text(x + side / 2, y + 18, f"{value:.3f}", "mono", size=SMALL, anchor="middle")
    canvas.grow(y + 34)
    return Drawing([Frame(canvas)])


COUNTS = "1 2 3 5 10 20 50 100 200 ∞"  # of top-k
KNOBS = (
    ("temperature", 'min="0" max="2" step="0.1" value="1"', "1.0"),
    ("top_k", f'min="0" max="9" value="9" data-counts="{COUNTS}"', "∞"),
    ("top_p", 'min="0.05" max="1" step="0.05" value="1"', "1.00"),
)


@figure("live_sampler")
def live_sampler(word: Words) -> Drawing:
    """A distribution under the reader's own settings, which docs/assets/sampler.js applies."""
    trace, canvas = traces.load("ch09_sampler"), Canvas()
    best, top = trace["best"][:SHOWN], 24.0
    canvas.text(0, 13, f"“{trace['prompt']}”", "mono bold", size=SMALL)
    for row, (piece, share) in enumerate(best):
        y = top + row * HIGH
        canvas.text(LEFT - 8, y + 14, piece.replace(" ", "␣"), "mono", size=SMALL, anchor="end")
        wide = WIDE * share / best[0][1]
        canvas.rect(LEFT, y + 2, wide, 15, "r1 solid", r=2, key=f"bar{row}")
        shown = f"{100 * share:.{0 if share >= 0.0995 else 1}f} %"
        canvas.text(canvas.width, y + 14, shown, size=SMALL, anchor="end", key=f"share{row}")
    y = top + SHOWN * HIGH + 14
    scores = trace["all"]
    count = len(scores["scores"]) + sum(number for number, _ in scores["groups"])
    shown = sum(share for _, share in best)
    more = {"kept": f"{count - SHOWN:,}", "share": f"{100 * (1 - shown):.0f} %"}
    canvas.text(canvas.width, y, word("more", **more), "dim", size=SMALL, anchor="end", key="more")
    y += 22
    canvas.text(0, y, word("sum", kept=f"{count:,}", share="100 %"), "bold", size=SMALL, key="sum")
    words = {"more": word("more", kept="{kept}", share="{share}"), "other": word("other")}
    words["sum"] = word("sum", kept="{kept}", share="{share}")
    data = scores | {"words": words, "pieces": [piece for piece, _ in trace["best"]]}
    knobs = "".join(
        f'<label><code>{name}</code><input type="range" data-knob="{name}" {limits}/>'
        f"<output>{value}</output></label>"
        for name, limits, value in KNOBS
    )
    draw = f'<button type="button" data-draw="">{escape(word("draw"))}</button>'
    panel = (
        f'<div class="fig-controls fig-knobs" hidden="">{knobs}{draw}'
        '<output data-drawn="" aria-live="polite"></output></div>'
    )
    legend = [("r1 solid", word("in")), ("free", word("out"))]
    sampler = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Drawing([Frame(canvas)], legend, panel=panel, data={"sampler": sampler})
