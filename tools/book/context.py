"""What a directive knows when it is expanded: the page, its chapter, its reader."""

from __future__ import annotations

import shlex
from functools import cached_property

from tools.book.errors import BookError
from tools.book.pages import Page
from tools.book.reader import Reader
from tools.book.sources import Sources
from tools.book.words import say
from tools.steplib import Step


class Context:
    """One page on its way from directives to Markdown."""

    def __init__(self, sources: Sources, page: Page) -> None:
        self.sources = sources
        self.page = page
        self.language = page.language
        self.step = sources.step_of(page.name)
        self.folded = False  # whether the page itself folds what is expanded now

    @cached_property
    def reader(self) -> Reader:
        """What the reader of this page has typed so far."""
        step = self.need_step()
        return Reader(self.sources.before(step), self.sources.after(step, self.language))

    def need_step(self) -> Step:
        """The page's chapter; BookError on a page that is none."""
        if self.step is None:
            raise BookError(
                "这一页不属于任何章节，这条指令要用在章节页里",
                "this page belongs to no chapter, and the directive is for chapters' pages",
            )
        return self.step

    def say(self, zh: str, en: str) -> str:
        """The one of two texts that belongs on this page."""
        return say(self.language, zh, en)


def arguments(
    text: str, options: set[str], least: int, most: int | None = None
) -> tuple[list[str], dict[str, str]]:
    """Split what follows a directive's name into words and `name=value` options.

    BookError when a word is missing or there is one too many, or for an unknown option.
    """
    try:
        pieces = shlex.split(text)
    except ValueError as error:
        raise BookError(f"引号不成对：{error}", f"quotes do not match: {error}") from None
    words: list[str] = []
    found: dict[str, str] = {}
    for one in pieces:
        name, sign, value = one.partition("=")
        if sign and name in options:
            found[name] = value
        else:
            words.append(one)
    if not least <= len(words) <= (least if most is None else most):
        known = ", ".join(f"{name}=" for name in sorted(options)) or "–"
        raise BookError(
            f"参数 {text!r} 不对（可用的选项：{known}）",
            f"wrong arguments {text!r} (options there are: {known})",
        )
    return words, found
