"""`@@figure NAME alt="…"@@`: a drawing of tools/figures.py, with words for who cannot see it."""

from __future__ import annotations

import importlib
import importlib.util
from html import escape

from tools.book.context import Context, arguments
from tools.book.errors import BookError


def figure(context: Context, text: str) -> str:
    """Return the drawing in the page's language, as one block of HTML."""
    words, options = arguments(text, {"alt"}, 1)
    if not options.get("alt", "").strip():
        raise BookError(
            f'图 {words[0]} 没有替代文字：写 alt="…"',
            f'figure {words[0]} has no words for those who cannot see it: write alt="…"',
        )
    drawn = _render(words[0], context.language)
    # A blank line would end the block of HTML for Markdown.
    body = "\n".join(line for line in drawn.split("\n") if line.strip())
    return f'<figure class="drawing" aria-label="{escape(options["alt"])}">\n{body}\n</figure>'


def _render(name: str, language: str) -> str:
    if importlib.util.find_spec("tools.figures") is None:
        raise BookError("还没有 tools/figures.py", "there is no tools/figures.py yet")
    figures = importlib.import_module("tools.figures")
    try:
        return str(figures.render(name, language))
    except figures.FigureError as error:
        raise BookError(str(error), str(error)) from None
