"""What must hold: for a page by itself, beside its translation, and for a chapter's code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tools.book.coverage import Coverage, covered
from tools.book.errors import BookError, Fault
from tools.book.expand import expand
from tools.book.notebooks import stale
from tools.book.pages import (
    Fence,
    Heading,
    Line,
    Page,
    directives,
    headings,
    inside,
    load_pages,
    scan,
)
from tools.book.readme import readme_faults
from tools.book.runs import PYTHON, RUN, SKETCH, failing_blocks
from tools.book.sources import Sources
from tools.book.translation import unequal
from tools.book.words import LANGUAGES
from tools.lang import tr
from tools.steplib import Step

SECTIONS = [
    *("goals", "self-test", "files", "idea", "predict", "steps", "run", "official"),
    *("tests", "four-questions", "exercises", "practice", "references"),
]
CODE = ("code", "removed", "main", "test")
MOST_CODE = 2  # blocks in a row
RULE = re.compile(r" {0,3}(?:=+|-+)\s*")
ASSET = re.compile(
    r"""!\[[^\]]*\]\(\s*(?:https?:)?//
    | <(?:img|script|iframe|video|audio|source|embed)\b[^>]*\bsrc(?:set)?=["']?(?:https?:)?//
    | <link\b[^>]*\bhref=["']?(?:https?:)?//
    | @import\s[^;]*//
    | url\(\s*["']?(?:https?:)?//""",
    re.VERBOSE,
)


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
                counted, found = covered(sources, expanded)
                faults += found
                if page.language == LANGUAGES[0]:
                    coverage.append(counted)
        faults += unequal(sources, pages, wanted)
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
    """By page and line, the page as a whole last; what is wrong in several places is said once."""
    first: dict[tuple[str, str], Fault] = {}
    for fault in sorted(faults, key=lambda one: (one.path, not one.line, one.line)):
        first.setdefault((fault.path, fault.what), fault)
    return list(first.values())


def _settings(sources: Sources) -> Iterator[Fault]:
    """docs/book.toml speaks of pages that there are."""
    known = {step.page for step in sources.book}
    for name in sources.settings.pages:
        if name not in known:
            text = tr(f"[pages.{name}] 不是任何一章的页", f"[pages.{name}] is not a chapter's page")
            yield Fault("docs/book.toml", 0, text)


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
    yield from _underlined(page)
    yield from _bites(page)
    titles = headings(page.text)
    if [one.level for one in titles].count(1) != 1 or titles[0].level != 1:
        text = tr(
            "要有且只有一个一级标题，写在最前", "a page has one heading of level 1, its first"
        )
        yield Fault(page.path, titles[0].number if titles else 0, text)
    ids = Counter(title.id for title in titles if title.id)
    for title in titles:
        if ids[title.id] > 1:
            yield Fault(
                page.path, title.number, tr(f"id {title.id} 重复", f"id {title.id} is used twice")
            )
    step = sources.step_of(page.name)
    if step:
        yield from _sections(page, step, titles)


def _underlined(page: Page) -> Iterator[Fault]:
    """A line of `=` or `-` makes a heading of the text above it, which no other check sees."""
    above = ""
    for one in scan(page.text):
        text = one.text if isinstance(one, Line) else ""
        if above.strip() and RULE.fullmatch(text):
            said = tr(
                "用 # 写标题，分隔线前空一行", "write headings with #, a blank line above a rule"
            )
            yield Fault(page.path, one.number, said)
        above = text


def _bites(page: Page) -> Iterator[Fault]:
    """Code comes in bites, with a sentence or a question between; folded edits are exempt."""
    row, folded, shown = 0, False, False
    for one in scan(page.text):
        if isinstance(one, Line):
            text = one.text.strip()
            if not text or one.kind == "heading":
                continue
            if text.startswith(("<details", "</details")):
                folded = text.startswith("<d")
            shown = one.kind == "directive" and inside(text).split(" ")[0] in CODE
        else:
            shown = True
        row = row + 1 if shown and not folded else 0
        if row == MOST_CODE + 1:
            said = tr(
                f"连续 {row} 块代码，中间没有一句话",
                f"{row} blocks of code in a row without a sentence between them",
            )
            yield Fault(page.path, one.number, said)


def _fence(page: Page, fence: Fence) -> Iterator[Fault]:
    if not fence.closed:
        text = tr("代码块没有结束：补上结尾的 ```", "this fence does not end: close it with ```")
        yield Fault(page.path, fence.number, text)
    words = fence.info.split()
    if words and words[0].strip("{.}").lower() in PYTHON and words[1:2] not in ([SKETCH], [RUN]):
        text = tr(
            "python 代码块要么是指令，要么标 run（会执行）或 sketch（示意）",
            "a python block is a directive, or says `run` (it is executed) or `sketch`",
        )
        yield Fault(page.path, fence.number, text)


def _sections(page: Page, step: Step, found: list[Heading]) -> Iterator[Fault]:
    """A chapter's page has the sections of every chapter's page, in their order."""
    have = [one.id for one in found if one.id in SECTIONS]
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
    names = {text.partition(" ")[0] for _, text in directives(page.text)}
    for name in ("facts", "tree", "output", "test"):
        if name not in names:
            yield Fault(page.path, 0, tr(f"缺少 @@{name}@@", f"@@{name}@@ is missing"))
