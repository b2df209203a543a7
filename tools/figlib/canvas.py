"""SVG primitives. Colours, fonts and strokes are classes of docs/assets/figures.css."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape

from .measure import text_width, wrap

WIDTH = 360.0  # what a phone shows in its own size, so that texts stay readable there
SMALL, NORMAL = 12.0, 13.0


@dataclass(frozen=True)
class Text:
    """A text as it was placed, for tests that look for what overlaps or sticks out."""

    content: str
    left: float
    right: float
    top: float
    bottom: float
    size: float


class Canvas:
    """A picture that grows downwards; coordinates are pixels at 1:1.

    `key` names a shape over the frames of a sequence: live figures move it from one to the next.
    """

    def __init__(self, width: float = WIDTH) -> None:
        self.width = width
        self.height = 0.0
        self.texts: list[Text] = []
        self._parts: list[str] = []

    @property
    def body(self) -> str:
        """The shapes so far."""
        return "".join(self._parts)

    def grow(self, bottom: float) -> None:
        """Let the picture reach down to `bottom` at least."""
        self.height = max(self.height, bottom)

    def rect(
        self, x: float, y: float, w: float, h: float, cls: str, *, r: float = 3, key: str = ""
    ) -> None:
        """A box. `cls` says what it is: `r1 solid`, `free`, `soft`, …"""
        self._add(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}" rx="{_n(r)}"'
            f' class="{cls}"{_key(key)}/>'
        )
        self.grow(y + h + 1)

    def hatch(self, x: float, y: float, w: float, h: float, cls: str = "", gap: float = 5) -> None:
        """Diagonals in a box, which tell it from a plain one without colour."""
        lines = []
        steps = int((w + h) / gap) + 1
        for step in range(1, steps):
            at = step * gap  # the diagonal x + y = at, cut off at the sides of the box
            x1, y1 = (at, 0.0) if at <= w else (w, at - w)
            x2, y2 = (0.0, at) if at <= h else (at - h, h)
            if x1 > x2:
                lines.append(f"M{_n(x + x1)} {_n(y + y1)}L{_n(x + x2)} {_n(y + y2)}")
        self.path("".join(lines), f"hatch {cls}".strip())

    def line(self, x1: float, y1: float, x2: float, y2: float, cls: str = "line") -> None:
        """A straight line."""
        self.path(f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}", cls)
        self.grow(max(y1, y2) + 1)

    def path(self, d: str, cls: str, key: str = "") -> None:
        """Any outline."""
        self._add(f'<path d="{d}" class="{cls}"{_key(key)}/>')

    def circle(self, x: float, y: float, r: float, cls: str, key: str = "") -> None:
        """A disc."""
        self._add(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(r)}" class="{cls}"{_key(key)}/>')
        self.grow(y + r + 1)

    def arrow(self, points: Sequence[tuple[float, float]], cls: str = "line") -> None:
        """A line through the points with a head at the last."""
        (x0, y0), (x, y) = points[-2], points[-1]
        length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5 or 1.0
        dx, dy = (x - x0) / length, (y - y0) / length
        shaft = [*points[:-1], (x - 5 * dx, y - 5 * dy)]
        self.path("M" + "L".join(f"{_n(a)} {_n(b)}" for a, b in shaft), cls)
        left = (x - 7 * dx - 3.6 * dy, y - 7 * dy + 3.6 * dx)
        right = (x - 7 * dx + 3.6 * dy, y - 7 * dy - 3.6 * dx)
        head = "L".join(f"{_n(a)} {_n(b)}" for a, b in ((x, y), left, right))
        self.path(f"M{head}Z", f"head {cls}")
        self.grow(max(b for _, b in points) + 4)

    def text(
        self,
        x: float,
        y: float,
        content: object,
        cls: str = "",
        *,
        size: float = NORMAL,
        anchor: str = "start",
        key: str = "",
    ) -> float:
        """One line whose baseline is `y`; `cls` may hold bold, mono, dim. Returns its width."""
        text = str(content)
        names = cls.split()
        width = text_width(text, size, mono="mono" in names, bold="bold" in names)
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        top, bottom = y - 0.8 * size, y + 0.22 * size
        self.texts.append(Text(text, left, left + width, top, bottom, size))
        where = "" if anchor == "start" else f' text-anchor="{anchor}"'
        # xml:space keeps the blank that a token begins with.
        self._add(
            f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" class="{f"t {cls}".strip()}"'
            f"{where}{_key(key)}>{escape(text, quote=False)}</text>"
        )
        self.grow(bottom + 1)
        return width

    def lines(
        self,
        x: float,
        y: float,
        content: str,
        width: float,
        cls: str = "",
        *,
        size: float = NORMAL,
        anchor: str = "start",
        leading: float = 1.35,
    ) -> float:
        """A paragraph of at most `width`; returns the baseline that would come next."""
        for line in wrap(content, width, size, bold="bold" in cls.split()):
            self.text(x, y, line, cls, size=size, anchor=anchor)
            y += leading * size
        return y

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        content: str | Iterable[str],
        cls: str = "soft",
        text: str = "",
        *,
        size: float = NORMAL,
        key: str = "",
    ) -> None:
        """A box with one or more centred lines in it."""
        self.rect(x, y, w, h, cls, key=key)
        rows = [content] if isinstance(content, str) else [*content]
        leading = 1.3 * size
        first = y + h / 2 + 0.36 * size - (len(rows) - 1) * leading / 2
        for number, row in enumerate(rows):
            self.text(x + w / 2, first + number * leading, row, text, size=size, anchor="middle")

    @contextmanager
    def link(self, address: str) -> Iterator[None]:
        """What is drawn meanwhile leads to the address; to none where that is empty."""
        if address:
            self._add(f'<a href="{escape(address)}">')
        yield
        if address:
            self._add("</a>")

    def lock(self, x: float, y: float, cls: str = "lock", key: str = "") -> None:
        """A padlock, 10 wide and 12 high, whose upper left corner is the point."""
        self.path(f"M{_n(x + 2.2)} {_n(y + 5.5)}v-2.2a2.8 2.8 0 0 1 5.6 0v2.2", f"{cls} shackle")
        self._add(
            f'<rect x="{_n(x)}" y="{_n(y + 5)}" width="10" height="7" rx="1.4" class="{cls}"'
            f"{_key(key)}/>"
        )
        self.grow(y + 13)

    def brace(self, x1: float, x2: float, y: float, cls: str = "line") -> None:
        """A bracket over the span, its ends pointing down."""
        self.path(f"M{_n(x1)} {_n(y + 5)}v-5H{_n(x2)}v5", cls)
        self.grow(y + 6)

    def _add(self, part: str) -> None:
        self._parts.append(part)


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _key(key: str) -> str:
    return f' data-key="{escape(key)}"' if key else ""
