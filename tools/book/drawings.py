"""`@@figure NAME alt="…"@@`: a drawing of tools/figures.py, with words for who cannot see it."""

from __future__ import annotations

from tools.book.context import Context, arguments
from tools.book.errors import BookError
from tools.figures import FigureError, render


def figure(context: Context, text: str) -> str:
    """Return the drawing in the page's language, as one block of HTML."""
    words, options = arguments(text, {"alt"}, 1)
    if not options.get("alt", "").strip():
        raise BookError(
            f'图 {words[0]} 没有替代文字：写 alt="…"',
            f'figure {words[0]} has no words for those who cannot see it: write alt="…"',
        )
    try:
        return render(words[0], context.language, options["alt"])
    except FigureError as error:
        raise BookError(str(error), str(error)) from None
