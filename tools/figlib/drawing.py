"""A figure: one picture or a sequence of frames, its legend, and the HTML around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape

from .canvas import Canvas
from .labels import Words, words


@dataclass(frozen=True)
class Frame:
    """A picture and the sentence above it.

    A picture that is `only` "wide" has a "narrow" one beside it, and the page's width decides.
    """

    canvas: Canvas
    caption: str = ""
    only: str = ""


@dataclass(frozen=True)
class Drawing:
    """What a figure function returns.

    `columns` is how many frames stand side by side where there is room; a phone shows one.
    `steps` lets a reader step through the frames: without JavaScript the first and last are shown.
    `panel` is HTML below the picture, for a script that finds its figure by `data`.
    """

    frames: list[Frame]
    legend: list[tuple[str, str]] = field(default_factory=list)  # (kind of swatch, its meaning)
    columns: int = 1
    steps: bool = False
    panel: str = ""
    data: dict[str, str] = field(default_factory=dict)  # name -> value, `data-name="value"`


Maker = Callable[[Words], Drawing]
MAKERS: dict[str, Maker] = {}
EDGE = 3  # room for the strokes at the sides
# The icons of every player; the second of PLAY is shown while it plays.
BACK, NEXT = ("M3 3h2v10H3zM13 3v10L6 8z",), ("M11 3h2v10h-2zM3 3v10l7-5z",)
PLAY = ("M4 2v12l10-6z", "M3 2h4v12H3zM9 2h4v12H9z")


def figure(name: str) -> Callable[[Maker], Maker]:
    """Register a function under the name by which pages ask for its figure."""

    def register(maker: Maker) -> Maker:
        assert name not in MAKERS, f"two figures are called {name}"
        MAKERS[name] = maker
        return maker

    return register


def html(name: str, language: str, alt: str) -> str:
    """The figure as one line of HTML; `alt` describes it for those who cannot see it."""
    word = words(name, language)
    drawing = MAKERS[name](word)
    title = word("title")
    width = max(frame.canvas.width for frame in drawing.frames if frame.only != "wide")
    sizes = f"fig-c{drawing.columns}" + (" fig-w" if width > 400 else "")
    frames = "".join(
        _frame(f"{name}-{number}", frame, title, alt, drawing, number, word)
        for number, frame in enumerate(drawing.frames, 1)
    )
    live = _controls(drawing, word) if drawing.steps else drawing.panel
    data = {"live": "steps"} if drawing.steps else drawing.data
    kind = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
    label = escape(alt or title)
    return (
        f'<div class="fig {sizes}" data-figure="{name}" role="group" aria-label="{label}"{kind}'
        f' data-search-exclude="">'
        f'<div class="fig-frames">{frames}</div>{live}{_legend(drawing.legend)}</div>'
    )


def svg(ident: str, canvas: Canvas, title: str, desc: str) -> str:
    """A picture as an SVG element with its name and description."""
    width, height = f"{canvas.width + 2 * EDGE:g}", f"{round(canvas.height + 3)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-EDGE} -1 {width} {height}"'
        f' width="{width}" height="{height}" role="img"'
        f' aria-labelledby="fig-{ident}-t fig-{ident}-d">'
        f'<title id="fig-{ident}-t">{escape(title)}</title>'
        f'<desc id="fig-{ident}-d">{escape(desc)}</desc>{canvas.body}</svg>'
    )


def _frame(
    ident: str, frame: Frame, title: str, alt: str, drawing: Drawing, number: int, word: Words
) -> str:
    count = 1 if frame.only else len(drawing.frames)
    name = title if count == 1 else f"{title} ({number}/{count})"
    picture = svg(ident, frame.canvas, name, frame.caption or alt or title)
    tag = f'<span class="fig-no">{number}</span> ' if count > 1 and not drawing.steps else ""
    caption = f'<p class="fig-cap">{tag}{escape(frame.caption)}</p>' if frame.caption else ""
    # Without JavaScript a reader sees where it begins and where it ends.
    hidden = ' hidden=""' if drawing.steps and number not in (1, count) else ""
    kind = f"fig-frame fig-{frame.only}" if frame.only else "fig-frame"
    scroll = f'<div class="fig-scroll">{picture}</div>'
    return f'<div class="{kind}"{hidden}>{caption}{scroll}</div>'


def _controls(drawing: Drawing, word: Words) -> str:
    """Buttons that live.js brings to life; hidden as long as it has not."""
    buttons = "".join(
        f'<button type="button" data-step="{step}" aria-label="{escape(word(label))}"'
        f' title="{escape(word(label))}">{_icon(outline)}</button>'
        for step, outline, label in (
            ("back", BACK, "go_back"),
            ("play", PLAY, "go_play"),
            ("next", NEXT, "go_next"),
        )
    )
    count = len(drawing.frames)
    return (
        f'<div class="fig-controls" hidden="">{buttons}<input type="range" min="1" max="{count}"'
        f' value="1" aria-label="{escape(word("go_slider"))}"/><output>1 / {count}</output></div>'
        f'<p class="fig-hint" hidden="">{escape(word("go_hint"))}</p>'
    )


def _icon(outlines: tuple[str, ...]) -> str:
    size = 'viewBox="0 0 16 16" width="16" height="16"'
    paths = "".join(f'<path d="{outline}"/>' for outline in outlines)
    return f'<svg {size} aria-hidden="true">{paths}</svg>'


def _legend(entries: list[tuple[str, str]]) -> str:
    if not entries:
        return ""
    items = "".join(
        f'<div role="listitem">{_swatch(kind)}<span>{escape(meaning)}</span></div>'
        for kind, meaning in entries
    )
    return f'<div class="fig-legend" role="list">{items}</div>'


def _swatch(kind: str) -> str:
    canvas = Canvas(18)
    hatched = kind.endswith("+hatch")
    if kind == "lock":
        canvas.lock(4, 2)
    else:
        canvas.rect(1, 1, 16, 14, kind.removesuffix("+hatch"))
        if hatched:
            canvas.hatch(1, 1, 16, 14, kind.removesuffix("+hatch").split()[0])
    return f'<svg viewBox="0 0 18 16" width="18" height="16" aria-hidden="true">{canvas.body}</svg>'
