"""Chapter 3: each weight of the checkpoint in its place, and one decoder layer."""

from __future__ import annotations

from typing import Any

from . import traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words

PREFIX = "model.layers.0."


@figure("ch03_names")
def names(word: Words) -> Drawing:
    """The weights of layer 0: the checkpoint's name, and the attribute that takes it."""
    trace = traces.load("ch03_models")
    weights = [one for one in trace["weights"] if one["name"].startswith(PREFIX)]
    canvas = Canvas()
    canvas.text(0, 13, word("checkpoint"), "bold")
    canvas.text(212, 13, word("place"), "bold")
    canvas.text(0, 31, f"{PREFIX}…", "mono dim", size=SMALL)
    top, high = 44.0, 31.0
    group = ""
    for number, weight in enumerate(weights):
        y = top + number * high
        short = weight["name"].removeprefix(PREFIX).removesuffix(".weight")
        cls = _kind(weight)
        canvas.text(0, y + 11, short.removeprefix("self_attn."), "mono", size=SMALL)
        shape = " × ".join(map(str, weight["shape"]))
        canvas.text(0, y + 25, shape, "mono dim", size=SMALL)
        canvas.arrow([(180, y + 13), (206, y + 13)], f"path {cls}")
        canvas.rect(212, y + 1, 147, high - 6, f"{cls} solid", r=2)
        place = weight["place"].removeprefix(PREFIX).removesuffix(".weight").split(".")[-1]
        rows = weight["rows"]
        if rows:
            part = f"{rows[0]}:{rows[1]}"
            canvas.text(354, y + 17, part, "mono", size=SMALL, anchor="end")
            if place != group:
                same = sum(one["place"] == weight["place"] for one in weights)
                canvas.rect(209, y - 2, 153, same * high, "frame", r=4)
            else:
                place = ""
            group = place or group
        label = word("post") if place.startswith("post_") else place
        canvas.text(218, y + 17, label, "mono bold" if rows else "mono", size=SMALL)
    if trace["config"]["tie_word_embeddings"]:
        y = top + len(weights) * high
        canvas.text(0, y + 18, "lm_head", "mono", size=SMALL)
        canvas.arrow([(180, y + 13), (206, y + 13)], "dash")
        canvas.rect(212, y + 1, 147, high - 6, "dots", r=2)
        canvas.text(218, y + 17, word("tied"), size=SMALL)
        top += high
    y = top + len(weights) * high + 16
    canvas.lines(0, y, word("note", count=trace["count"]), canvas.width, "dim", size=SMALL)
    return Drawing([Frame(canvas)])


def _kind(weight: dict[str, Any]) -> str:
    """Colour by the layer that owns the weight."""
    if "self_attn" in weight["name"]:
        return "r1" if weight["rows"] else "r6"
    if "mlp" in weight["name"]:
        return "r2" if weight["rows"] else "r5"
    return "r3"


@figure("ch03_layers")
def layers(word: Words) -> Drawing:
    """One decoder layer with the shapes of the real model, and the residual stream beside it."""
    config = traces.load("ch03_models")["config"]
    hidden, dim = config["hidden_size"], config["head_dim"]
    queries, keys = config["num_qo_heads"], config["num_kv_heads"]
    middle = config["intermediate_size"]
    canvas = Canvas()
    x, wide, stream = 80.0, 146.0, 22.0
    centre = x + wide / 2
    blocks = [
        ("input_layernorm", "r3", f"[n, {hidden}]"),
        ("qkv_proj", "r1", f"[n, {(queries + 2 * keys) * dim}]"),
        ("RoPE", "r4", f"q [n, {queries}, {dim}]"),
        ("attention", "r1", f"k, v [n, {keys}, {dim}]"),
        ("o_proj", "r1", f"[n, {hidden}]"),
        ("+", "", ""),
        ("post_attention_layernorm", "r3", f"[n, {hidden}]"),
        ("gate_up_proj", "r2", f"[n, {2 * middle}]"),
        ("silu(gate) × up", "r2", f"[n, {middle}]"),
        ("down_proj", "r2", f"[n, {hidden}]"),
        ("+", "", ""),
    ]
    canvas.text(stream, 14, f"x  [n, {hidden}]", "mono bold", size=SMALL, anchor="start")
    y = 26.0
    canvas.rect(46, y + 4, 313, len(blocks) * 38 - 2, "dots", r=8)
    canvas.text(352, y + 20, word("times", n=config["num_layers"]), "bold", anchor="end")
    start = y - 6
    canvas.arrow([(stream, y + 16), (centre, y + 16), (centre, y + 26)], "line")
    y += 28
    for number, (name, cls, shape) in enumerate(blocks):
        if name == "+":
            canvas.path(f"M{stream} {start}V{y + 2}", "path r6")
            canvas.arrow([(centre, y - 10), (centre, y + 12), (stream + 12, y + 12)], "line")
            canvas.circle(stream, y + 12, 10, "r6 solid")
            canvas.text(stream, y + 17, "+", "bold", anchor="middle", size=15)
            start = y + 22
            if number < len(blocks) - 1:
                canvas.arrow([(stream, y + 30), (centre, y + 30), (centre, y + 38)], "line")
                y += 40
            continue
        width = 190.0 if len(name) > 20 else wide
        canvas.box(centre - width / 2, y, width, 26, name, f"{cls} solid", "mono", size=SMALL)
        if width == wide:
            canvas.text(x + wide + 10, y + 17, shape, "mono dim", size=SMALL)
        if blocks[number + 1][0] != "+":
            canvas.arrow([(centre, y + 26), (centre, y + 36)], "line")
        y += 36
    canvas.arrow([(stream, start), (stream, y + 44)], "path r6")
    canvas.text(stream + 14, y + 42, word("next"), "dim", size=SMALL)
    return Drawing([Frame(canvas)], [("r6 solid", word("stream"))])
