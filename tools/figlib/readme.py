"""The chapters as a staircase, with what each was measured to bring: READMEs and start page."""

from __future__ import annotations

import re
from pathlib import Path

from tools.lang import tr
from tools.steplib import Step

from . import data
from .canvas import SMALL, Canvas
from .charts import number
from .drawing import Drawing, Frame, figure
from .errors import FigureError
from .labels import LANGUAGES, Words, words
from .measure import text_width

ASSETS = data.ROOT / "docs" / "assets"
SCHEMES = {"light": "default", "dark": "slate"}
WIDTH, EDGE = 976.0, 8.0
# Flights of nine stairs, so that three of them hold the book's 27 chapters.
FLIGHT, RISE, LOWEST = 9, 15.0, 112.0
STAIR = (WIDTH - 2 * EDGE) / FLIGHT
NAME = 11.2  # the size of a stair's name, of which the longest just fits
TOP, ICON = 30.0, 62.0  # room above the first flight, and above the highest stair of each
FONTS = "Helvetica,Arial,'PingFang SC','Microsoft YaHei','Noto Sans CJK SC',sans-serif"


def files() -> dict[Path, str]:
    """Path -> content of each: the English ones have the plain names."""
    return {
        ASSETS / f"readme-{'' if language == 'en' else f'{language}-'}{name}.svg": picture(
            name, language
        )
        for language in LANGUAGES
        for name in SCHEMES
    }


def write() -> list[Path]:
    """Write the picture for both languages and schemes; returns the files."""
    for path, text in files().items():
        path.write_text(text, "utf-8")
    return list(files())


def faults() -> list[str]:
    """A line for each file that is not what `write` would write now."""
    found = []
    for path, text in files().items():
        if not path.is_file() or path.read_text("utf-8") != text:
            found.append(
                tr(
                    f"docs/assets/{path.name} 已过期：请运行 python3 tools/figures.py readme",
                    f"docs/assets/{path.name} is stale: run python3 tools/figures.py readme",
                )
            )
    return found


def picture(name: str, language: str) -> str:
    """The picture as a file of its own, its colours inside: GitHub shows no style of ours."""
    word = words("readme", language)
    canvas, floor = Canvas(WIDTH), _floor(_shown()[-1].number)
    height = floor + 32
    canvas.rect(0.5, 0.5, WIDTH - 1, height - 1, "sheet", r=10)
    canvas.text(28, 46, "mini-sglang", "bold", size=26)
    canvas.text(28, 70, word("line"), "dim", size=14)
    _stairs(canvas, word)
    canvas.text(
        WIDTH / 2,
        floor + 20,
        "docs/  ·  steps/  ·  tests/  ·  bench/",
        "mono dim",
        size=SMALL,
        anchor="middle",
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fig" viewBox="0 0 {WIDTH:g} {height:g}"'
        f' width="{WIDTH:g}" height="{height:g}" role="img">'
        f"<title>{word('title')}</title>"
        f"<style>{_style(SCHEMES[name])}</style>{canvas.body}</svg>\n"
    )


@figure("staircase")
def staircase(word: Words) -> Drawing:
    """The same for the start page, whose stairs lead to their chapters; a list for a phone."""
    wide, narrow, gains = Canvas(WIDTH), Canvas(), _gains(word)
    _stairs(wide, word, links=True)
    wide.text(8, 24, word("line"), "dim", size=15)
    for step in _shown():
        y, cls = 2 + step.number * 31.0, f"r{step.part + 1}"
        with narrow.link(f"{step.page}/"):
            narrow.rect(0, y, 130 + step.number * 4, 27, f"{cls} solid")
            narrow.text(8, y + 18, f"{step.number:02}", "bold")
            narrow.text(32, y + 18, _label(step), "mono", size=SMALL)
        if step.number in gains:
            gain, what = gains[step.number]
            right = narrow.width
            narrow.text(right, y + 12, f"{gain} {what[0]}", "bold", size=11.4, anchor="end")
            narrow.text(right, y + 25, what[1], "dim", size=11.4, anchor="end")
    return Drawing([Frame(wide, only="wide"), Frame(narrow, only="narrow")])


def _shown() -> list[Step]:
    return [step for step in data.book() if step.number < len(ICONS)]


def _label(step: Step) -> str:
    return step.folder.name.partition("_")[2]


def _floor(number: int) -> float:
    """Where the flight of a chapter stands: below those before it, and as high as it is itself."""
    count = len(_shown())
    sizes = [min(FLIGHT, count - start) for start in range(0, count, FLIGHT)]
    own = sizes[: number // FLIGHT + 1]
    return TOP + sum(LOWEST + (size - 1) * RISE + ICON for size in own)


def _stairs(canvas: Canvas, word: Words, links: bool = False) -> None:
    gains = _gains(word)
    for step in _shown():
        index, floor = step.number, _floor(step.number)
        place = index % FLIGHT
        x = EDGE + place * STAIR
        y = floor - LOWEST - place * RISE
        cls = f"r{step.part + 1}"
        if place == 0:
            canvas.line(EDGE, floor + 1, WIDTH - EDGE, floor + 1, "line")
        with canvas.link(f"{step.page}/" if links else ""):
            canvas.rect(x, y, STAIR - 3, floor - y, f"{cls} solid", r=3)
            canvas.text(x + 6, y + 20, f"{index:02}", "bold", size=16)
            spare = STAIR - 3 - text_width(_label(step), NAME, mono=True)
            canvas.text(x + min(6, spare / 2), y + 38, _label(step), "mono", size=NAME)
            ICONS[index](canvas, x + 14, y - 46, cls)
            if index in gains:
                gain, what = gains[index]
                canvas.text(x + 6, y + 66, gain, "bold", size=18)
                for line, text in enumerate(what):
                    canvas.text(x + 6, y + 84 + line * 15, text, size=SMALL)


def _gains(word: Words) -> dict[int, tuple[str, list[str]]]:
    """Chapter -> (the figure, what it is), each the largest case of its benchmark."""
    cache = data.bench_rows("ch05_kv_cache")[-1]
    rows, *paged = data.bench_rows("ch06_paged_pool")
    pool = next(row for row in paged if row["page_size"] == 16)
    batch = data.bench_rows("ch07_attention")[-1]
    ttft = data.bench_rows("ch08_ttft")[-1]
    rows_of_32 = [row for row in data.bench_rows("ch09_sample") if row["rows"] == 32]
    top_p = next(row for row in rows_of_32 if row["kind"] == "top-p 0.9")
    joining = data.bench_rows("ch10_scheduler")[-1]
    steps = [row for row in data.bench_rows("ch11_decode") if row["dtype"] == "float32"]
    layout = next(row for row in steps if row["rows"] == 8)
    gaps = {row["budget"]: row["worst_ms"] for row in data.bench_rows("ch12_gaps")}
    cases = [row for row in data.bench_rows("ch13_preemption") if row["answers"] == "short"]
    rooms = next(row for row in cases if row["pages"] == 28)
    return {
        5: (f"{number(cache['ratio'])}×", word("cache", n=f"{cache['length']:,}").split("|")),
        6: (str(pool["requests"]), word("pool", n=rows["requests"]).split("|")),
        7: (f"{number(batch['speedup'])}×", word("batch", n=batch["batch_size"]).split("|")),
        8: (f"{number(ttft['ratio'])}×", word("ttft", n=f"{ttft['prefix_tokens']:,}").split("|")),
        9: (f"{number(top_p['ratio'])}×", word("top_p", n=top_p["rows"]).split("|")),
        10: (f"{number(joining['speedup'])}×", word("joining").split("|")),
        11: (f"{number(layout['over_plain'])}×", word("layout", n=layout["rows"]).split("|")),
        12: (f"{number(gaps[None] / gaps[256])}×", word("chunks").split("|")),
        13: (
            f"{number(rooms['expected_rows'] / rooms['longest_rows'])}×",
            word("rooms").split("|"),
        ),
    }


def _style(scheme: str) -> str:
    """The rules for pictures and the colours of one scheme, out of the site's style sheet."""
    css = (ASSETS / "figures.css").read_text("utf-8")
    block = re.search(rf'\[data-md-color-scheme="{scheme}"\] {{(.*?)}}', css, re.S)
    rules = re.search(r"/\* --- inside a picture -+ \*/(.*?)/\* ---", css, re.S)
    if block is None or rules is None:
        raise FigureError(
            tr(
                "docs/assets/figures.css 里找不到配色或图形规则：请恢复它的分段注释",
                "docs/assets/figures.css has lost its colours or the rules of pictures: put the "
                "comments back that divide it",
            )
        )
    font = f".fig{{font-family:{FONTS}}}"
    sheet = ".fig .sheet{fill:var(--fig-bg);stroke:var(--fig-grid)}"
    text = f".fig{{{block[1]}}}{font}{sheet}{rules[1]}"
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", text, flags=re.S)).strip()


# --- icons: a small figure for each chapter, 72 wide and 40 high ---------------------------------


def _loop(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for index in range(4):
        canvas.rect(x + index * 15, y + 18, 13, 18, f"{cls} {'strong' if index == 3 else 'edge'}")
    canvas.arrow(
        [(x + 66, y + 27), (x + 72, y + 27), (x + 72, y + 8), (x + 30, y + 8), (x + 30, y + 17)]
    )


def _lengths(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for index in range(6):
        kind = f"{cls} solid" if index < 2 else f"{cls} strong" if index < 4 else "free"
        canvas.rect(x + index * 12, y + 22, 10, 14, kind, r=2)
    for line, end in enumerate((22, 46, 70)):
        canvas.path(f"M{x} {y + 16 - line * 6}H{x + end}", "line")


def _heads(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for row in range(4):
        for column in range(4):
            kind = f"{cls} strong" if column <= row else f"{cls} edge"
            canvas.rect(x + 18 + column * 10, y - 2 + row * 10, 8.5, 8.5, kind, r=1)


def _stack(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for index in range(4):
        canvas.rect(x + 12, y + index * 10, 48, 7.5, f"{cls} {'strong' if index % 2 else 'edge'}")


def _text(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for index, wide in enumerate((16, 24, 12)):
        left = x + (0, 19, 46)[index]
        canvas.rect(left, y + 6, wide, 14, f"{cls} {'strong' if index == 2 else 'edge'}")
    canvas.path(f"M{x} {y + 28}h60M{x} {y + 35}h38", "line")


def _kept(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for row in range(4):
        for column in range(7):
            kind = "strong" if (column == 3 + row or (row == 0 and column < 3)) else "edge"
            if column <= 3 + row:
                canvas.rect(x + column * 10, y - 2 + row * 10, 8.5, 8.5, f"{cls} {kind}", r=1)


def _pages(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for index, owner in enumerate("112225515442041"):
        kind = "free" if owner == "0" else f"r{owner} solid"
        canvas.rect(x + index % 5 * 14, y - 4 + index // 5 * 14, 12, 12, kind, r=2)


def _ragged(canvas: Canvas, x: float, y: float, cls: str) -> None:
    at = x
    for owner, count in (("r1", 4), ("r2", 2), ("r5", 1)):
        for _ in range(count):
            canvas.rect(at, y + 12, 8.5, 16, f"{owner} solid", r=1)
            at += 10
        canvas.path(f"M{at - 0.5} {y + 8}v24", "line")


def _tree(canvas: Canvas, x: float, y: float, cls: str) -> None:
    canvas.path(f"M{x + 24} {y + 8}H{x + 36}M{x + 30} {y + 8}V{y + 28}H{x + 36}", "line")
    canvas.rect(x, y + 1, 24, 14, "r1 solid")
    canvas.rect(x + 36, y + 1, 36, 14, "r2 solid")
    canvas.rect(x + 36, y + 21, 24, 14, "r5 solid")


def _chosen(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for index, high in enumerate((34, 22, 15, 9, 6, 4)):
        kind = f"{cls} strong" if index == 1 else f"{cls} edge" if index < 4 else "free"
        canvas.rect(x + index * 12, y + 36 - high, 9, high, kind, r=1)
    canvas.line(x, y + 28, x + 70, y + 28, "dash")


def _joining(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for row, bars in enumerate((((0, 2), (2, 4)), ((0, 5),), ((0, 3), (3, 3)))):
        for index, (left, wide) in enumerate(bars):
            kind = f"{cls} {'strong' if index else 'edge'}"
            canvas.rect(x + left * 12, y + row * 13, wide * 12 - 2, 10, kind, r=2)


def _blocks(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for row in range(3):
        for column in range(3):
            kinds = "strong" if row == 1 else "edge", "strong" if column == 1 else "edge"
            for left, kind in zip((x, x + 44), kinds, strict=True):
                place = left + column * 10, y + 4 + row * 10
                canvas.rect(*place, 8.5, 8.5, f"{cls} {kind}", r=1)
    canvas.arrow([(x + 31, y + 18), (x + 41, y + 18)])


def _chunks(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for index, wide in enumerate((14, 14, 8)):
        left = x + index * 25
        canvas.rect(left, y + 4, 5, 30, f"{cls} edge", r=1)
        canvas.rect(left + 7, y + 4, wide, 30, f"{cls} strong", r=1)


def _giving_way(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for index in range(10):
        left, top = x + index % 5 * 14, y + 2 + index // 5 * 14
        canvas.rect(left, top, 12, 12, f"{cls} strong" if index < 7 else "free", r=2)
    canvas.arrow([(x + 34, y + 36), (x + 70, y + 36)])


def _lanes(canvas: Canvas, x: float, y: float, cls: str) -> None:
    for index in range(3):
        canvas.rect(x + index * 24, y + 6, 9, 11, f"{cls} edge", r=1)
        canvas.rect(x + index * 24, y + 22, 23, 12, f"{cls} strong", r=1)


ICONS = (
    _loop,
    _lengths,
    _heads,
    _stack,
    _text,
    _kept,
    _pages,
    _ragged,
    _tree,
    _chosen,
    _joining,
    _blocks,
    _chunks,
    _giving_way,
    _lanes,
)
