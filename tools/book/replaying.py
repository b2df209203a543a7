"""Replay the chapters of this repository: each page on top of the step before."""

from __future__ import annotations

from collections.abc import Iterator

from tools.book.expand import expand
from tools.book.pages import Page, load_pages
from tools.book.replay import Outcome, replay
from tools.book.sources import Sources


def replay_pages(sources: Sources, wanted: list[str]) -> Iterator[tuple[Page, Outcome]]:
    """Yield the pages of chapters (those named, or all) with what typing them gives."""
    for page in load_pages(sources.root):
        step = sources.step_of(page.name)
        if step is None or (wanted and page.name not in wanted):
            continue
        listed = [(one.path, one.symbol) for one in sources.settings.hidden(page.name)]
        markdown = expand(sources, page).markdown
        after = sources.after(step, page.language)
        yield page, replay(markdown, sources.before(step), after, listed)
