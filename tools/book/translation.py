"""Both languages have the same pages, with the same directives, headings and folds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.book.errors import Fault
from tools.book.pages import Line, Page, directives, headings, scan
from tools.book.sources import Sources
from tools.book.words import LANGUAGES
from tools.lang import tr

ALT = re.compile(r" alt=(?:\"[^\"]*\"|\S+)")


def unequal(sources: Sources, pages: list[Page], wanted: list[str] | None) -> Iterator[Fault]:
    """Both languages have the same pages, directives, headings and folds."""
    by_name: dict[str, dict[str, Page]] = {}
    for page in pages:
        by_name.setdefault(page.name, {})[page.language] = page
    names = wanted or sorted({*by_name, *(step.page for step in sources.book)})
    for name in names:
        found = by_name.get(name, {})
        for language in LANGUAGES:
            if language not in found:
                text = tr("没有这一页", "there is no such page")
                yield Fault(f"docs/{language}/{name}.md", 0, text)
        if len(found) == len(LANGUAGES):
            yield from _pair(*(found[language] for language in LANGUAGES))


def _pair(zh: Page, en: Page) -> Iterator[Fault]:
    yield from _beside(zh, en, _plain_directives(zh), _plain_directives(en))
    yield from _beside(zh, en, _outline(zh), _outline(en))
    folds = [
        sum(isinstance(one, Line) and one.kind == "fold" for one in scan(page.text))
        for page in (zh, en)
    ]
    if folds[0] != folds[1]:
        text = tr(
            f"有 {folds[1]} 个折叠块，{zh.path} 有 {folds[0]} 个",
            f"{folds[1]} folded blocks, {zh.path} has {folds[0]}",
        )
        yield Fault(en.path, 0, text)


def _beside(
    zh: Page, en: Page, first: list[tuple[int, str]], second: list[tuple[int, str]]
) -> Iterator[Fault]:
    """Name the first place at which two lists of (line, what) part."""
    for (_, here), (number, there) in zip(first, second, strict=False):
        if here != there:
            text = tr(
                f"这里是 {there}，{zh.path} 同一处是 {here}",
                f"{there} here, {zh.path} has {here} in its place",
            )
            yield Fault(en.path, number, text)
            return
    short, longer = (zh, second) if len(first) < len(second) else (en, first)
    if len(first) != len(second):
        extra = longer[min(len(first), len(second))][1]
        other = en.path if short is zh else zh.path
        text = tr(f"缺少 {extra}，{other} 有", f"{extra} is missing, {other} has it")
        yield Fault(short.path, 0, text)


def _plain_directives(page: Page) -> list[tuple[int, str]]:
    """Directives without the words that are translated."""
    return [(number, f"@@{ALT.sub('', text)}@@") for number, text in directives(page.text)]


def _outline(page: Page) -> list[tuple[int, str]]:
    return [
        (one.number, "#" * one.level + (f" {{#{one.id}}}" if one.id else " (no id)"))
        for one in headings(page.text)
    ]
