"""Chapter 5: what is computed again and what is kept, and the memory that is reserved for it."""

from __future__ import annotations

from . import data, traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words


@figure("ch05_recompute")
def recompute(word: Words) -> Drawing:
    """A row per round, a cell per token: computed this round, or read from the cache."""
    trace = traces.load("ch05_kv_cache")
    frames = [
        _rounds(word, trace["forget"], trace["prompt_len"], word("forget")),
        _rounds(word, trace["keep"], trace["prompt_len"], word("keep")),
    ]
    legend = [
        ("r1 full", word("computed")),
        ("r1 pale", word("cached")),
        ("r0 pale", word("to_come")),
    ]
    return Drawing(frames, legend, columns=2)


def _rounds(word: Words, passes: list[list[int]], prompt_len: int, name: str) -> Frame:
    canvas = Canvas()
    left, top, high = 26.0, 52.0, 17.0
    longest = passes[-1][1] + 1
    wide = (canvas.width - left - 34) / longest
    canvas.text(0, 14, name, "bold")
    canvas.brace(left, left + prompt_len * wide, 42)
    canvas.text(
        left + prompt_len * wide / 2, 37, word("prompt", n=prompt_len), anchor="middle", size=SMALL
    )
    canvas.text(canvas.width, 37, word("computed_short"), "dim", anchor="end", size=SMALL)
    total = 0
    for number, (cached, end) in enumerate(passes, 1):
        y = top + (number - 1) * (high + 4)
        canvas.text(16, y + 13, number, "dim", anchor="end", size=SMALL)
        for position in range(longest):
            x = left + position * wide
            kind = "r1 pale" if position < cached else "r1 full" if position < end else "r0 pale"
            canvas.rect(x, y, wide - 0.9, high, kind, r=1)
        canvas.text(canvas.width, y + 13, end - cached, "bold", anchor="end")
        total += end - cached
    y = top + len(passes) * (high + 4) + 14
    canvas.text(left, y, word("sum"), "dim", size=SMALL)
    canvas.text(canvas.width, y, total, "bold", anchor="end", size=15)
    return Frame(canvas)


@figure("ch05_rows")
def rows(word: Words) -> Drawing:
    """The rows of the example's cache, and how little of them texts of some lengths need."""
    trace = traces.load("ch05_kv_cache")
    return Drawing(
        [_reserved(word, trace), _used(word)],
        [("r1 strong", word("used")), ("r0 edge+hatch", word("reserved"))],
        columns=2,
    )


def _reserved(word: Words, trace: dict[str, int]) -> Frame:
    canvas = Canvas()
    count, longest = trace["num_rows"], trace["max_seq_len"]
    used = trace["keep"][-1][1]  # type: ignore[index]
    high, left = 30.0, 20.0
    wide = canvas.width - left - 1
    canvas.text(0, 14, word("rows", rows=count, longest=longest), "bold")
    canvas.text(0, 32, word("rows_note"), "dim", size=SMALL)
    top = 44.0
    for row in range(count):
        y = top + row * (high + 6)
        canvas.text(0, y + 20, row, "mono dim", size=SMALL)
        full = wide * used / longest if row == 0 else 0.0
        canvas.rect(left, y, wide, high, "r0 edge", r=2)
        canvas.hatch(left + full, y, wide - full, high, "r0", gap=8)
        if full:
            canvas.rect(left, y, full, high, "r1 strong", r=1)
    y = top + count * (high + 6) + 12
    per_token = trace["bytes"] / (count * longest)
    megabytes = {"used": used * per_token / 1e6, "all": trace["bytes"] / 1e6}
    canvas.text(
        0, y, word("bytes", n=used, **{k: f"{v:.1f}" for k, v in megabytes.items()}), size=SMALL
    )
    canvas.grow(y + 6)
    return Frame(canvas)


def _used(word: Words) -> Frame:
    canvas = Canvas()
    measured = data.bench_rows("ch05_kv_cache")
    reserved = measured[0]["reserved_mb"]
    canvas.text(0, 14, word("bars", reserved=f"{reserved:.1f}"), "bold")
    canvas.text(0, 32, word("bars_note"), "dim", size=SMALL)
    left, top, high = 48.0, 44.0, 30.0
    wide = canvas.width - left - 1
    for number, row in enumerate(measured):
        y = top + number * (high + 6)
        canvas.text(left - 8, y + 20, row["length"], "mono", anchor="end", size=SMALL)
        part = wide * row["used_mb"] / row["reserved_mb"]
        canvas.rect(left, y, wide, high, "r0 edge", r=2)
        canvas.hatch(left + part, y, wide - part, high, "r0", gap=8)
        canvas.rect(left, y, max(part, 1.5), high, "r1 strong", r=1)
        label = f"{row['used_mb']:.1f} MB"
        canvas.rect(left + part + 5, y + 5, 66, 20, "r0 none plain", r=3)
        canvas.text(left + part + 38, y + 19.5, label, size=SMALL, anchor="middle")
    canvas.grow(top + len(measured) * (high + 6) + 18)
    return Frame(canvas)


@figure("ch05_cone")
def cone(word: Words) -> Drawing:
    """Layer by layer, whose KV changes when one token of the text does."""
    trace = traces.load("ch05_kv_cache")["cone"]
    canvas, change = Canvas(), trace["change"]
    left, high, wide = 60.0, 7.0, 36.5
    bottom = 6 + len(change) * (high + 1)
    for layer, row in enumerate(change):
        y = bottom - (layer + 1) * (high + 1)
        if layer in (0, len(change) - 1):
            canvas.text(left - 8, y + 8, word("layer", n=layer), size=SMALL, anchor="end")
        for position, value in enumerate(row):
            kind = "r1 pale" if value == 0 else "hot full" if value >= 0.1 else "hot pale"
            canvas.rect(left + position * (wide + 1), y, wide, high, kind, r=1)
    for position, pieces in enumerate(zip(*trace["pieces"], strict=True)):
        middle = left + position * (wide + 1) + wide / 2
        for line, piece in enumerate(dict.fromkeys(pieces)):
            cls = "mono hot bold" if len(set(pieces)) > 1 else "mono"
            at = bottom + 17 + line * 16
            canvas.text(middle, at, piece.strip(), cls, size=SMALL, anchor="middle")
    canvas.grow(bottom + 38)
    legend = [
        ("r1 pale", word("same")),
        ("hot pale", word("little")),
        ("hot full", word("much")),
    ]
    return Drawing([Frame(canvas)], legend)
