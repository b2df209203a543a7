"""A statement as HTML. Raw HTML in it is shown as text, and only safe links become links."""

from __future__ import annotations

from functools import lru_cache

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from practice.judgelib.catalogue import Problem
from practice.judgelib.samples import without_marks
from practice.judgelib.text import Text


def statement_html(problem: Problem) -> Text:
    """The statement in both languages; math is `<span class="math …">` or `<div …>` with TeX."""
    return Text(*(_html(without_marks(text)) for text in problem.statement()))


@lru_cache(maxsize=512)
def _html(text: str) -> str:
    return str(_markdown().render(text))


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    return made.use(dollarmath_plugin, allow_digits=False, allow_space=False)
