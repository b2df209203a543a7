"""Chapter 1: the three lengths of a request, and what holds what."""

from __future__ import annotations

from . import data, traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words
from .measure import text_width

CORE = "minisgl/core.py"
STAGES = ("admitted", "prefilled", "decoded")


@figure("ch01_lengths")
def lengths(word: Words) -> Drawing:
    """The example's request when it is admitted, after its prefill and after its first decode."""
    stages = traces.load("ch01_req")["stages"]
    canvas = Canvas()
    left, step, high = 112.0, 25.5, 28.0
    for number, (stage, name) in enumerate(zip(stages, STAGES, strict=False)):
        top = number * 132.0
        cached, device, longest = (
            stage[f"{which}_len"] for which in ("cached", "device", "max_device")
        )
        canvas.text(0, top + 14, word(name, n=cached), "bold")
        derived = f"extend_len={device - cached} remain_len={longest - device}"
        canvas.text(left + 9 * step, top + 14, derived, "mono dim", size=SMALL, anchor="end")
        y = top + 26
        for index in range(longest):
            x = left + index * step
            kind = "r1 solid" if index < cached else "r1 strong" if index < device else "free"
            canvas.rect(x, y, step - 2.5, high, kind)
            tone = "on" if kind == "r1 strong" else "dim" if kind == "free" else ""
            canvas.text(
                x + step / 2 - 1.2, y + 19, index, f"mono {tone}", size=SMALL, anchor="middle"
            )
        for line, (label, value) in enumerate(
            (("cached_len", cached), ("device_len", device), ("max_device_len", longest))
        ):
            at = y + high + 15 + line * 18
            end = left + value * step - 2.5
            canvas.text(left - 8, at + 4, label, "mono", size=SMALL, anchor="end")
            canvas.path(f"M{left} {at - 4}v8M{left} {at}H{end}M{end} {at - 4}v8", "line")
            canvas.text(end + 6, at + 4.5, value, "mono bold", size=SMALL)
    legend = [
        ("r1 solid", word("cached")),
        ("r1 strong", word("extend")),
        ("free", word("remain")),
    ]
    return Drawing([Frame(canvas)], legend)


@figure("ch01_batch")
def batch(word: Words) -> Drawing:
    """Context holds the current Batch, which holds Reqs; every name is a field of core.py."""
    canvas = Canvas()
    canvas.rect(1, 1, 358, 380, "soft", r=8)
    canvas.text(14, 22, "Context", "mono bold", size=15)
    canvas.text(346, 22, word("context"), "dim", size=SMALL, anchor="end")
    y = _chips(canvas, _public("Context"), 14, 34, 332)

    canvas.rect(14, y + 6, 332, 372 - y - 6, "plain", r=8)
    canvas.text(26, y + 28, "Batch", "mono bold", size=15)
    canvas.text(334, y + 28, word("batch"), "dim", size=SMALL, anchor="end")
    fields = [name for name in _public("Batch") if name != "reqs"]
    y = _chips(canvas, fields, 26, y + 40, 308)
    canvas.text(26, y + 14, "reqs", "mono", size=SMALL)
    for number in range(2):
        x = 26 + number * 156
        canvas.rect(x, y + 22, 150, 372 - y - 34, f"r{number + 1} solid", r=6)
        canvas.text(x + 10, y + 41, "Req", "mono bold", size=14)
        canvas.text(x + 140, y + 41, word("req", n=number + 1), "dim", size=SMALL, anchor="end")
        for line, name in enumerate(_public("Req")):
            canvas.text(x + 10, y + 62 + line * 17, name, "mono", size=SMALL)
    return Drawing([Frame(canvas)])


def _public(name: str) -> list[str]:
    return [one for one in data.class_fields(1, CORE, name) if not one.startswith("_")]


def _chips(canvas: Canvas, names: list[str], x: float, y: float, width: float) -> float:
    """Names of fields in boxes, as many to a line as fit; returns where the next thing may be."""
    left = x
    for name in names:
        wide = text_width(name, SMALL, mono=True) + 12
        if x + wide > left + width:
            x, y = left, y + 27
        canvas.box(x, y, wide, 22, name, "edge r0", "mono", size=SMALL)
        x += wide + 6
    return y + 27
