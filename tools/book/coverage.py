"""Whether a chapter's page shows every line that the chapter changes."""

from __future__ import annotations

from dataclasses import dataclass

from tools.book.errors import Fault
from tools.book.expand import Expanded, expand
from tools.book.pages import Page, directives
from tools.book.reader import Reader, changed
from tools.book.sources import Sources
from tools.lang import tr
from tools.steplib import Step

LARGEST_HIDDEN = 0.1


@dataclass(frozen=True)
class Coverage:
    """How much of what a chapter changes its page shows, in lines that are not blank."""

    step: Step
    changed: int
    hidden: int
    missing: int

    @property
    def shown(self) -> int:
        """Lines that stand on the page."""
        return self.changed - self.hidden - self.missing


def covered(sources: Sources, expanded: Expanded) -> tuple[Coverage, list[Fault]]:
    """Every line that a chapter changes is shown, or listed with a reason."""
    context, path = expanded.context, expanded.context.page.path
    step, reader = context.need_step(), context.reader
    faults: list[Fault] = []
    listed = sources.settings.hidden(step.page)
    if listed and all(text != "diff" for _, text in directives(context.page.text)):
        text = tr("有 not_shown 的页要写 @@diff@@", "a page with not_shown needs @@diff@@")
        faults.append(Fault(path, 0, text))
    untold = _without(sources, context.page, {(one.path, one.symbol) for one in listed})
    hidden = sum(
        count
        for name, symbol, count in untold.missing()
        if any(one.path == name and _covers(one.symbol, symbol) for one in listed)
    )
    missing = reader.missing()
    for name, symbol, count in missing:
        faults.append(Fault(path, 0, _not_shown(name, symbol, count)))
    total = changed(reader.before, reader.after)
    if total and hidden > LARGEST_HIDDEN * total:
        text = tr(
            f"not_shown 有 {hidden} 行，超过本章 {total} 行的十分之一",
            f"{hidden} lines are not_shown, more than a tenth of this chapter's {total}",
        )
        faults.append(Fault(path, 0, text))
    return Coverage(step, total, hidden, sum(count for *_, count in missing)), faults


def _covers(listed: str, symbol: str) -> bool:
    return not listed or symbol == listed or symbol.startswith(f"{listed}.")


def _without(sources: Sources, page: Page, listed: set[tuple[str, str]]) -> Reader:
    """What the reader has from the page alone, without the lines that are listed."""
    if not listed:
        return expand(sources, page).context.reader
    text = "\n".join(line for line in page.text.split("\n") if line.strip() != "@@diff@@")
    return expand(sources, Page(page.language, page.name, text)).context.reader


def _not_shown(path: str, symbol: str, count: int) -> str:
    if symbol.startswith("-"):
        target = f"{path}:{symbol[1:]}" if symbol[1:] else path
        return tr(
            f"本章删除了 {target}，页上没有：写 @@removed {target}@@",
            f"this chapter takes {target} away, the page does not: write @@removed {target}@@",
        )
    target = f"{path}:{symbol}" if symbol else path
    return tr(
        f"没有展示 {target}（{count} 行）：写 @@code {target}@@，"
        "或列入 docs/book.toml 的 not_shown",
        f"{target} is not shown ({count} lines): write @@code {target}@@, or list it as not_shown "
        "in docs/book.toml",
    )
