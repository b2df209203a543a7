"""The overview: duties in layers, processes, two paths, states, and one request's eight steps."""

from __future__ import annotations

import re
from itertools import pairwise

from . import data, traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words
from .measure import text_width, wrap
from .shapes import tokens

LAYERS = (
    ("interface", "r1", ("llm", "server", "tokenizer")),
    ("orchestration", "r2", ("scheduler", "message", "core")),
    ("execution", "r3", ("engine", "models", "layers", "attention")),
    ("state", "r4", ("kvcache",)),
)


@figure("layers")
def layers(word: Words) -> Drawing:
    """Four layers with their question and their folders; dashed ones come in later chapters."""
    newest = max(step.number for step in data.book())
    there = data.packages(newest)
    canvas = Canvas()
    for number, (name, cls, folders) in enumerate(LAYERS):
        y = number * 92.0
        canvas.rect(1, y + 1, 358, 76, f"{cls} solid", r=6)
        canvas.text(14, y + 23, word(name), "bold", size=15)
        canvas.text(348, y + 23, word(f"{name}_asks"), size=SMALL, anchor="end")
        x = 14.0
        for folder in folders:
            label = f"{folder}.py" if folder == "core" else f"{folder}/"
            wide = text_width(label, SMALL, mono=True) + 12
            kind = "edge" if folder in there else "dots"
            canvas.box(x, y + 40, wide, 25, label, f"{cls} {kind}", "mono", size=SMALL)
            x += wide + 7
        if number:
            canvas.arrow([(168, y - 13), (168, y)], "line")
            canvas.arrow([(192, y), (192, y - 13)], "line")
    return Drawing(
        [Frame(canvas)], [("r0 edge", word("there", n=f"{newest:02}")), ("dots", word("later"))]
    )


@figure("processes")
def processes(word: Words) -> Drawing:
    """Who runs in which process of the official engine, and what they send each other."""
    canvas = Canvas()
    canvas.box(120, 1, 120, 28, word("user"), "soft")
    canvas.box(70, 78, 220, 48, ["API Server", word("api")], "r1 solid", size=NORMAL_SIZE)
    canvas.arrow([(150, 29), (150, 76)], "path r1")
    canvas.arrow([(210, 78), (210, 31)], "path r1 dashed")
    canvas.text(143, 57, "HTTP", "mono", size=SMALL, anchor="end")
    canvas.text(218, 57, "SSE", "mono", size=SMALL)

    canvas.box(1, 190, 150, 48, ["Tokenizer Worker", word("tokenizer")], "r2 solid", size=SMALL)
    canvas.box(
        209, 190, 150, 48, ["Detokenizer Worker", word("detokenizer")], "r2 solid", size=SMALL
    )
    canvas.arrow([(96, 126), (96, 188)], "path r2")
    canvas.arrow([(264, 190), (264, 128)], "path r2 dashed")
    canvas.text(88, 162, word("text"), size=SMALL, anchor="end")
    canvas.text(272, 162, word("piece"), size=SMALL)

    canvas.rect(21, 302, 318, 122, "r3 solid", r=6)
    canvas.text(34, 324, "Scheduler Worker", "bold")
    canvas.text(326, 324, word("scheduler"), size=SMALL, anchor="end")
    canvas.rect(36, 338, 288, 74, "r3 edge", r=5)
    canvas.text(48, 358, "Engine", "bold")
    x = 48.0
    for part in ("model", "kv", "sampler"):
        canvas.box(x, 368, 84, 34, word(part), "r4 solid", size=SMALL)
        x += 91
    canvas.arrow([(76, 238), (76, 300)], "path r3")
    canvas.arrow([(284, 302), (284, 240)], "path r3 dashed")
    canvas.text(84, 274, word("ids"), size=SMALL)
    canvas.text(276, 274, word("token"), size=SMALL, anchor="end")
    for offset in (6, 12):
        right, bottom = 339 + offset, 424 + offset
        canvas.path(f"M{27 + offset} {bottom}H{right}V{302 + offset}", "frame")
    canvas.text(21, 452, word("ranks"), "dim", size=SMALL)
    return Drawing([Frame(canvas)], [("r2 solid", word("one_process"))])


NORMAL_SIZE = 13.0


@figure("paths")
def paths(word: Words) -> Drawing:
    """Left what decides who is computed, right what is computed with; the Batch joins them."""
    canvas = Canvas()
    canvas.text(84, 15, word("control"), "bold", size=15, anchor="middle")
    canvas.text(84, 33, word("control_asks"), "dim", size=SMALL, anchor="middle")
    canvas.text(276, 15, word("data"), "bold", size=15, anchor="middle")
    canvas.text(276, 33, word("data_asks"), "dim", size=SMALL, anchor="middle")
    canvas.line(180, 6, 180, 146, "dash")
    canvas.line(180, 224, 180, 436, "dash")
    canvas.box(9, 48, 150, 40, ["Req", word("lengths")], "r2 edge", size=SMALL)
    canvas.arrow([(84, 88), (84, 106)], "path r2 dashed")
    canvas.box(9, 108, 150, 40, ["Scheduler", word("chooses")], "r2 edge", size=SMALL)
    tensors = ["input_ids", "positions", "page_table", "out_loc"]
    canvas.box(201, 48, 150, 100, tensors, "r1 solid", "mono", size=SMALL)
    canvas.arrow([(84, 148), (84, 166)], "path r2 dashed")
    canvas.arrow([(276, 148), (276, 166)], "path r1")
    canvas.rect(9, 168, 342, 56, "hot solid", r=6)
    canvas.text(180, 191, "Batch", "mono bold", size=15, anchor="middle")
    canvas.text(180, 211, word("batch"), size=SMALL, anchor="middle")
    canvas.arrow([(276, 224), (276, 244)], "path r1")
    canvas.box(201, 246, 150, 40, ["Model Runner", word("forward")], "r1 solid", size=SMALL)
    canvas.arrow([(276, 286), (276, 306)], "path r1")
    canvas.text(284, 301, "logits", "mono", size=SMALL)
    canvas.box(201, 308, 150, 40, ["Sampler", word("next")], "r1 solid", size=SMALL)
    canvas.box(201, 392, 150, 44, ["KV cache", word("kv")], "r4 solid", size=SMALL)
    canvas.arrow([(358, 340), (358, 266), (352, 266)], "path r4")
    canvas.arrow([(358, 340), (358, 414), (352, 414)], "path r4")
    canvas.box(9, 308, 150, 40, ["Req", word("advance")], "r2 edge", size=SMALL)
    canvas.arrow([(201, 328), (161, 328)], "path r1")
    canvas.arrow([(84, 348), (84, 392)], "path r2 dashed")
    canvas.box(9, 392, 150, 44, word("decide").split("|"), "r2 edge", size=SMALL)
    canvas.arrow([(9, 414), (2, 414), (2, 128), (7, 128)], "path r2 dashed")
    return Drawing(
        [Frame(canvas)], [("r2 edge", word("control_line")), ("r1 solid", word("data_line"))]
    )


@figure("states")
def states(word: Words) -> Drawing:
    """The five teaching states of a request and what moves it from one to another."""
    canvas = Canvas()
    wide, high, y = 96.0, 46.0, 64.0
    columns = [1.0, 132.0, 263.0]
    for x, name, cls in zip(
        columns, ("WAITING", "PREFILL", "DECODE"), ("r0", "r2", "r1"), strict=True
    ):
        canvas.box(x, y, wide, high, [name, word(name.lower())], f"{cls} solid", size=SMALL)
    canvas.arrow([(97, y + 23), (130, y + 23)], "line")
    canvas.arrow([(228, y + 23), (261, y + 23)], "line")
    canvas.path(f"M346 {y}v-13a7 7 0 0 0 -7 -7h-20a7 7 0 0 0 -7 7", "line")
    canvas.arrow([(312, y - 13), (312, y - 1)], "line")
    canvas.arrow([(286, y), (286, 26), (49, 26), (49, y - 2)], "dash")
    canvas.path(f"M180 {y}V26", "dash")
    canvas.text(168, 19, word("preempted"), "dim", size=SMALL, anchor="middle")

    low = 192.0
    canvas.box(200, low, 159, high, ["FINISHED", word("finished")], "r3 solid", size=SMALL)
    canvas.box(1, low, 159, high, ["ABORTED", word("aborted")], "r5 solid", size=SMALL)
    canvas.arrow([(325, y + high), (325, low - 2)], "line")
    canvas.arrow([(216, y + high), (216, low - 2)], "line")
    canvas.text(222, 176, word("one_token"), "dim", size=SMALL)
    canvas.text(319, 134, word("ends"), size=SMALL, anchor="end")
    rail = 150.0
    canvas.arrow([(49, y + high), (49, low - 2)], "path r5 dashed")
    canvas.path(
        f"M150 {y + high}V{rail}H49M280 {y + high}V{y + high + 12}H176V{rail}H150", "path r5 dashed"
    )
    canvas.text(58, 176, word("abort"), size=SMALL)
    return Drawing([Frame(canvas)])


# The columns, from left to right; a step is (its column, the name of its sentence).
LANES = ("server", "tokenizer", "scheduler", "runner", "sampler")
STEPS = (
    (0, "received"),
    (1, "encoded"),
    (2, "queued"),
    (2, "chosen"),
    (3, "prefill"),
    (4, "first"),
    (3, "decode"),
    (1, "returned"),
)


@figure("steps_of_a_request")
def steps_of_a_request(word: Words) -> Drawing:
    """The running example from its text to its answer, in eight steps over five parts."""
    trace = traces.load("ch05_kv_cache")
    new, prompt = trace["new"], trace["prompt_len"]
    values = {
        "prompt": trace["prompt"],
        "n": prompt,
        "new": new,
        "first": trace["pieces"][0],
        "rounds": new - 1,
        "total": prompt + new,
        "kv": trace["keep"][-1][1],
        "text": "".join(trace["pieces"]),
    }
    canvas = Canvas()
    lane, left = 25.0, 12.0
    text = left + 4 * lane + 22
    y = 16.0
    marks: list[tuple[float, float]] = []
    for column, name in STEPS:
        marks.append((left + column * lane, y))
        part = word(LANES[column])
        canvas.text(text, y - 1, part, f"bold ink r{column + 1}", size=SMALL)
        told = word(name, **values)
        bottom = canvas.lines(text, y + 15, told, canvas.width - text, size=SMALL)
        y = max(y + 46, bottom + 10)
    for number in range(len(LANES)):
        canvas.line(left + number * lane, 4, left + number * lane, y - 22, "grid")
    for (x, high), (x2, low) in pairwise(marks):
        side = x2 + (12 if x2 < x else -12)
        canvas.arrow([(x, high), (x, low), (side, low)] if x != x2 else [(x, high), (x, low - 12)])
    for number, ((x, high), (column, _)) in enumerate(zip(marks, STEPS, strict=True), 1):
        canvas.circle(x, high, 10.5, f"r{column + 1} strong")
        canvas.text(x, high + 4.4, number, "on bold", size=SMALL, anchor="middle")
    return Drawing([Frame(canvas)])


@figure("overview_tokens")
def overview_tokens(word: Words) -> Drawing:
    """The running example: its tokens, the pages that its KV fills, and the answer's pieces."""
    trace = traces.load("ch05_kv_cache")
    size = traces.load("ch06_paged_pool")["page_size"]
    prompt, kept = trace["prompt_len"], trace["keep"][-1][1]
    canvas = Canvas()
    canvas.box(1, 1, 358, 30, f"“{trace['prompt']}”", "soft", "bold")
    canvas.text(0, 54, word("prompt", n=prompt), size=SMALL)
    across = -(-prompt // 2)
    step = 358 / across
    for token in range(prompt):
        x, y = 1 + token % across * step, 62 + token // across * 18
        canvas.rect(x, y, step - 2, 15, "r1 solid", r=2)
    canvas.arrow([(180, 98), (180, 118)])

    pages = -(-kept // size)
    bottom = 152 + 334 / pages + 14
    canvas.rect(1, 118, 358, bottom - 104, "soft", r=8)
    canvas.text(14, 139, word("engine", rounds=trace["new"] - 1), "bold")
    wide = 334 / pages
    cell = (wide - 18) / 4
    for number in range(pages):
        left = 14 + number * wide
        canvas.rect(left, 152, wide - 8, wide - 8, "frame", r=3)
        for slot in range(size):
            token = number * size + slot
            cls = "free" if token >= kept else "r2 solid" if token >= prompt else "r1 solid"
            x, y = left + 6 + slot % 4 * cell, 158 + slot // 4 * cell
            canvas.rect(x, y, cell - 2, cell - 2, cls, r=2)
    canvas.text(14, bottom, word("pool", n=kept, pages=pages, size=size), size=SMALL)

    canvas.arrow([(180, bottom + 15), (180, bottom + 34)])
    canvas.text(0, bottom + 50, word("answer", n=trace["new"]), size=SMALL)
    tokens(canvas, 1, bottom + 58, trace["pieces"], "r2 solid")
    legend = [
        ("r1 solid", word("from_prompt")),
        ("r2 solid", word("from_answer")),
        ("free", word("no_kv")),
    ]
    return Drawing([Frame(canvas)], legend)


@figure("demo")
def demo(word: Words) -> Drawing:
    """What the demo prints, its tokens as they were streamed."""
    *first, last = traces.load("demo")["answers"]
    return Drawing([_answers(first), _answers([last])], columns=2)


def _answers(answers: list[tuple[str, list[str]]]) -> Frame:
    canvas, y = Canvas(), 14.0
    for question, pieces in answers:
        for line in wrap(f"> {question}", canvas.width, SMALL, bold=True):
            canvas.text(0, y, line, "mono bold", size=SMALL)
            y += 18
        x = 0.0
        for number, piece in enumerate(pieces):
            for part in re.split(r"(\n)", piece):
                wide = text_width(part, SMALL, mono=True)
                if part == "\n" or x + wide > canvas.width:
                    x, y = 0.0, y + 18
                if part.strip("\n"):
                    kind = "r1 pale" if number % 2 else "r3 pale"
                    canvas.rect(x, y - 12, wide - 0.5, 16, kind, r=2)
                    canvas.text(x, y, part, "mono", size=SMALL)
                    x += wide
        y += 32
    return Frame(canvas)
