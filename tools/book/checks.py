"""What must hold: for a page by itself, beside its translation, and for a chapter's code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.book.cards import lines_of_chapter
from tools.book.errors import BookError, Fault
from tools.book.expand import Expanded, expand
from tools.book.notebooks import stale
from tools.book.pages import Fence, Heading, Line, Page, directives, headings, load_pages, scan
from tools.book.reader import Reader
from tools.book.readme import readme_faults
from tools.book.runs import PYTHON, RUN, failing_blocks
from tools.book.sources import Sources
from tools.book.words import LANGUAGES
from tools.lang import tr
from tools.steplib import Step

LARGEST_HIDDEN = 0.1
SECTIONS = [
    *("goals", "self-test", "files", "idea", "predict", "steps", "run", "four-questions"),
    *("official", "tests", "two-minutes", "exercises", "summary", "practice", "references"),
]
# The first two chapters have no engine yet, and so not all of it.
FREE_CHAPTERS = (0, 1)
ALT = re.compile(r" alt=(?:\"[^\"]*\"|\S+)")
ASSET = re.compile(
    r"""!\[[^\]]*\]\(\s*(?:https?:)?//
    | <(?:img|script|iframe|video|audio|source|embed)\b[^>]*\bsrc=["'](?:https?:)?//
    | <link\b[^>]*\bhref=["'](?:https?:)?//
    | @import\s[^;]*//
    | url\(\s*["']?(?:https?:)?//""",
    re.VERBOSE,
)


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


@dataclass(frozen=True)
class Checked:
    """All faults of a check, the coverage of the chapters, and how many pages it saw."""

    faults: list[Fault]
    coverage: list[Coverage]
    pages: int


def check(sources: Sources, wanted: list[str] | None = None, *, running: bool = True) -> Checked:
    """Check the pages whose names are `wanted` (None: all, and that none is missing)."""
    pages = [page for page in load_pages(sources.root) if not wanted or page.name in wanted]
    faults: list[Fault] = []
    coverage: list[Coverage] = []
    try:
        faults += _settings(sources)
        for page in pages:
            expanded = expand(sources, page)
            faults += [*expanded.faults, *_alone(sources, page)]
            if expanded.context.step:
                counted, found = _covered(sources, expanded)
                faults += found
                if page.language == LANGUAGES[0]:
                    coverage.append(counted)
        faults += _pairs(sources, pages, wanted)
        if not wanted:
            faults += _notebooks(sources)
            faults += readme_faults(sources)
        if running:
            faults += failing_blocks(sources, pages)
    except BookError as error:
        path, _, what = str(error).partition(": ")
        faults.append(Fault(path, 0, what) if what else Fault("docs", 0, path))
    return Checked(_sorted(faults), coverage, len(pages))


def _sorted(faults: list[Fault]) -> list[Fault]:
    """By page and line; what is wrong in several places of a page is said at the first."""
    first: dict[tuple[str, str], Fault] = {}
    for fault in sorted(faults, key=lambda one: (one.path, one.line)):
        first.setdefault((fault.path, fault.what), fault)
    return list(first.values())


def _settings(sources: Sources) -> Iterator[Fault]:
    """docs/book.toml speaks of pages and symbols that there are."""
    known = {step.page: step for step in sources.book}
    for name, page in sources.settings.pages.items():
        if name not in known:
            text = tr(f"[pages.{name}] 不是任何一章的页", f"[pages.{name}] is no chapter's page")
            yield Fault("docs/book.toml", 0, text)
            continue
        for one in page.not_shown:
            if one.path not in sources.package(known[name].number):
                yield Fault(
                    "docs/book.toml",
                    0,
                    tr(
                        f"[pages.{name}] not_shown：{known[name].label} 没有 {one.path}",
                        f"[pages.{name}] not_shown: {known[name].label} has no {one.path}",
                    ),
                )


def _notebooks(sources: Sources) -> Iterator[Fault]:
    for path in stale(sources):
        again = "python3 -m tools.book notebooks"
        yield Fault(path, 0, tr(f"过时：运行 {again}", f"stale: run {again}"))


def _alone(sources: Sources, page: Page) -> Iterator[Fault]:
    """What a page has to fulfil by itself."""
    for one in scan(page.text):
        if isinstance(one, Fence):
            yield from _fence(page, one)
        elif ASSET.search(one.text):
            text = tr(
                "引用了站外资源：放进 docs/assets",
                "an asset from another site: put it into docs/assets",
            )
            yield Fault(page.path, one.number, text)
    titles = headings(page.text)
    if [one.level for one in titles].count(1) != 1 or titles[0].level != 1:
        text = tr(
            "要有且只有一个一级标题，写在最前", "a page has one heading of level 1, its first"
        )
        yield Fault(page.path, titles[0].number if titles else 0, text)
    ids = [title.id for title in titles if title.id]
    for title in titles:
        if title.id and ids.count(title.id) > 1:
            yield Fault(
                page.path, title.number, tr(f"id {title.id} 重复", f"id {title.id} is there twice")
            )
    step = sources.step_of(page.name)
    if step:
        yield from _sections(page, step, titles)


def _fence(page: Page, fence: Fence) -> Iterator[Fault]:
    words = fence.info.split()
    if words and words[0] in PYTHON and words[1:2] not in (["sketch"], [RUN]):
        text = tr(
            "python 代码块要么是指令，要么标 run（会执行）或 sketch（示意）",
            "a python block is a directive, or says `run` (it is executed) or `sketch`",
        )
        yield Fault(page.path, fence.number, text)


def _sections(page: Page, step: Step, found: list[Heading]) -> Iterator[Fault]:
    """A chapter's page has the sections of every chapter's page, in their order."""
    have = [one.id for one in found if one.id in SECTIONS]
    if step.number not in FREE_CHAPTERS:
        for name in SECTIONS:
            if name not in have:
                text = tr(f"缺少一节 {{#{name}}}", f"section {{#{name}}} is missing")
                yield Fault(page.path, 0, text)
    if have != sorted(have, key=SECTIONS.index):
        order = ", ".join(have)
        text = tr(f"各节的次序不对：{order}", f"the sections are out of order: {order}")
        yield Fault(page.path, 0, text)
    figures = sum(text.startswith("figure ") for _, text in directives(page.text))
    least = 2 if step.number else 1
    if figures < least:
        text = tr(f"有 {figures} 幅图，至少要 {least} 幅", f"{figures} figures, at least {least}")
        yield Fault(page.path, 0, text)
    names = {text.split()[0] for _, text in directives(page.text)}
    for name in ("facts", "tree", "output", "test"):
        if name not in names:
            yield Fault(page.path, 0, tr(f"缺少 @@{name}@@", f"@@{name}@@ is missing"))


def _covered(sources: Sources, expanded: Expanded) -> tuple[Coverage, list[Fault]]:
    """Every line that a chapter changes is shown, or listed with a reason."""
    context, path = expanded.context, expanded.context.page.path
    step, reader = context.need_step(), context.reader
    faults: list[Fault] = []
    facts = sources.settings.pages.get(step.page)
    listed = facts.not_shown if facts else ()
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
    total = lines_of_chapter(context)
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


def _pairs(sources: Sources, pages: list[Page], wanted: list[str] | None) -> Iterator[Fault]:
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
