"""The shapes that recur: a token is a cell, a page a square, a request a colour and a letter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .canvas import SMALL, Canvas

COLOURS = 6


def colour(index: int) -> str:
    """The class of request number `index`, from 0 on; colours come again after six."""
    return f"r{index % COLOURS + 1}"


def runs(pages: Iterable[int]) -> list[tuple[int, int]]:
    """Neighbours put together: (first, one past the last), in order."""
    found: list[tuple[int, int]] = []
    for page in sorted(pages):
        if found and found[-1][1] == page:
            found[-1] = (found[-1][0], page + 1)
        else:
            found.append((page, page + 1))
    return found


def spans(pages: Sequence[int]) -> str:
    """Pages as a reader writes them: `2–8, 24`."""
    return ", ".join(f"{a}" if b == a + 1 else f"{a}–{b - 1}" for a, b in runs(pages))


def in_order(pages: Sequence[int]) -> str:
    """Pages in the order in which they come, neighbours put together: `37–32, 24, 8–7`."""
    found: list[list[int]] = []
    for number in pages:
        last = found[-1] if found else []
        step = number - last[-1] if last else 0
        if abs(step) == 1 and (len(last) == 1 or step == last[1] - last[0]):
            last.append(number)
        else:
            found.append([number])
    return ", ".join(f"{one[0]}" if len(one) == 1 else f"{one[0]}–{one[-1]}" for one in found)


def page(
    canvas: Canvas,
    x: float,
    y: float,
    side: float,
    owner: str = "",
    cls: str = "",
    *,
    new: bool = False,
    size: float = SMALL,
    key: str = "",
    height: float = 0,
) -> None:
    """A page: its owner's colour and letter, or free (dashed, empty); `new` rings it."""
    high = height or side
    if owner or cls:
        canvas.rect(x, y, side, high, f"{cls} solid", key=key)
    else:
        canvas.rect(x, y, side, high, "free", key=key)
    if new:
        canvas.rect(x - 0.5, y - 0.5, side + 1, high + 1, "ring")
    if owner:
        middle = y + high / 2 + 0.36 * size
        canvas.text(x + side / 2, middle, owner, "bold", size=size, anchor="middle", key=key + "t")


def cells(
    canvas: Canvas,
    x: float,
    y: float,
    w: float,
    h: float,
    kinds: Iterable[str],
    gap: float = 1,
) -> float:
    """A row of token cells, each of a kind (`+hatch` may follow); returns where it ends."""
    for kind in kinds:
        cls = kind.removesuffix("+hatch")
        canvas.rect(x, y, w, h, cls, r=min(2, w / 4))
        if kind.endswith("+hatch"):
            canvas.hatch(x, y, w, h, cls.split()[0])
        x += w + gap
    return x - gap


def tokens(
    canvas: Canvas, x: float, y: float, pieces: Sequence[str], cls: str, *, h: float = 24
) -> float:
    """Tokens as cells as wide as their text; a leading blank is shown. Returns where it ends."""
    from .measure import text_width

    for piece in pieces:
        shown = piece.replace(" ", "␣").replace("\n", "↵")
        w = text_width(shown, SMALL, mono=True) + 10
        canvas.rect(x, y, w, h, cls)
        canvas.text(x + w / 2, y + h / 2 + 4.3, shown, "mono", size=SMALL, anchor="middle")
        x += w + 4
    return x - 4
