"""Chapter 0: the loop that a language model is called in, and where its time goes."""

from __future__ import annotations

from tools.lang import tr

from . import data, traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .errors import FigureError
from .labels import Words

SCRIPT = "examples/ch00_tiny_engine.py"
PARTS = (("attention", "r1"), ("mlp", "r2"), ("head", "r3"))


@figure("ch00_loop")
def loop(word: Words) -> Drawing:
    """The functions of the script, in the order in which a token is made."""
    known = data.function_names(SCRIPT)
    for name in ("generate", "forward", "attention", "mlp", "rms_norm", "rotary"):
        if name not in known:
            raise FigureError(
                tr(
                    f"{SCRIPT} 里没有 {name}：请修改 ch00_loop",
                    f"{SCRIPT} has no {name}: change the figure ch00_loop",
                )
            )
    config = traces.load("ch03_models")["config"]
    canvas = Canvas()
    left, wide, x = 20.0, 262.0, 151.0
    canvas.box(left, 2, wide, 30, word("text"), "soft")
    canvas.arrow([(x, 32), (x, 52)])
    canvas.text(x + 10, 46, word("encode"), "dim", size=SMALL)

    canvas.rect(left - 12, 54, wide + 70, 338, "dots", r=8)
    canvas.text(left, 71, "generate()", "mono bold")
    canvas.text(left + 238, 71, word("ids"), "dim", size=SMALL, anchor="end")
    _ids(canvas, left + 8, 82)

    canvas.rect(left, 142, wide, 190, "soft", r=6)
    canvas.text(left + 12, 161, "forward()", "mono bold")
    canvas.arrow([(x, 116), (x, 140)])
    inner = left + 12
    canvas.box(inner, 170, wide - 24, 26, word("embedding", n=config["hidden_size"]), "plain")
    canvas.arrow([(x, 196), (x, 208)])
    canvas.rect(inner, 208, wide - 24, 74, "plain")
    canvas.text(inner + wide - 34, 224, f"× {config['num_layers']}", "bold", anchor="end")
    canvas.text(inner + 10, 224, word("layer"), "dim", size=SMALL)
    canvas.box(inner + 10, 232, 104, 40, ["attention()", word("mix")], "r1 solid", size=SMALL)
    canvas.arrow([(inner + 114, 252), (inner + 126, 252)])
    canvas.box(inner + 126, 232, 102, 40, ["mlp()", word("each")], "r2 solid", size=SMALL)
    canvas.arrow([(x, 282), (x, 294)])
    canvas.box(inner, 294, wide - 24, 28, word("head", n=f"{config['vocab_size']:,}"), "r3 solid")
    canvas.arrow([(x, 332), (x, 356)])
    canvas.box(left + 50, 356, wide - 100, 26, word("argmax"), "hot solid", "bold")
    back = left + wide + 30
    canvas.arrow(
        [(left + wide - 50, 369), (back, 369), (back, 99), (left + 8 + 236, 99)], "path hot"
    )
    canvas.text(back - 6, 348, word("append"), "hot", size=SMALL, anchor="end")
    canvas.arrow([(x, 382), (x, 408)])
    canvas.box(left, 408, wide, 30, word("decode"), "soft")
    return Drawing([Frame(canvas)])


def _ids(canvas: Canvas, x: float, y: float) -> None:
    for index in range(8):
        cls = "hot solid" if index == 6 else "free" if index == 7 else "r1 solid"
        canvas.rect(x + index * 29, y, 26, 34, cls)
    canvas.text(x + 6 * 29 + 13, y + 22, "+1", "bold", anchor="middle")


@figure("ch00_where_time")
def where_time(word: Words) -> Drawing:
    """Shares of the time for one token, by the length of the text; from the recorded output."""
    pattern = r"\s*(\d+)\s+≈([\d.]+)\s+≈(\d+)\s+≈(\d+)\s+≈(\d+)"
    rows = data.output_table(0, pattern)
    canvas = Canvas()
    left, right, top, high = 46.0, 76.0, 24.0, 32.0
    wide = canvas.width - left - right
    canvas.text(left - 8, 13, word("length"), "dim", size=SMALL, anchor="end")
    canvas.text(canvas.width, 13, "ms/token", "dim", size=SMALL, anchor="end")
    for number, (length, ms, *shares) in enumerate(rows):
        y = top + number * (high + 10)
        canvas.text(left - 8, y + 21, length, "mono bold", anchor="end")
        x = left
        for (_, cls), share in zip(PARTS, shares, strict=True):
            part = wide * int(share) / 100
            canvas.rect(x, y, part, high, f"{cls} solid", r=0)
            if cls == "r2":
                canvas.hatch(x, y, part, high, cls, gap=8)
            if part > 34:
                canvas.rect(x + part / 2 - 18, y + 6, 36, 20, f"{cls} pale", r=3)
                canvas.text(x + part / 2, y + 21, f"{share} %", anchor="middle")
            x += part
        canvas.rect(x, y, left + wide - x, high, "r0 edge", r=0)
        canvas.text(canvas.width, y + 21, f"{float(ms):,.0f}", "bold", anchor="end", size=15)
    legend = [
        ("r1 solid", word("attention")),
        ("r2 solid+hatch", word("mlp")),
        ("r3 solid", word("head")),
        ("r0 edge", word("rest")),
    ]
    return Drawing([Frame(canvas)], legend)
