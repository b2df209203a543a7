"""From a page as it is written to plain Markdown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tools.book import cards, code, drawings, tables
from tools.book.context import Context
from tools.book.errors import BookError, Fault
from tools.book.links import resolve
from tools.book.pages import Fence, Line, Page, inside, outside_code, scan
from tools.book.runs import RUN, SKETCH
from tools.book.sources import Sources
from tools.book.values import EXPRESSION, evaluate
from tools.steplib import StepError

Directive = Callable[[Context, str], str]
# What would stand on the page as it is written, or hide what counts as shown.
SIGNS = (
    ("@@", "指令 @@…@@ 要独占一行", "a directive, @@…@@, stands on a line of its own"),
    ("{{", "要在同一行用 }} 结束", "must end with }} on the same line"),
    ("<!--", "页上不写注释", "a page has no comments"),
)

DIRECTIVES: dict[str, Directive] = {
    "facts": cards.facts,
    "tree": code.tree,
    "code": code.code,
    "removed": code.removed,
    "main": code.main,
    "output": code.output,
    "table": tables.bench_table,
    "figure": drawings.figure,
    "problems": cards.problems,
    "test": code.test,
    "diff": cards.diff,
    "roadmap": tables.roadmap,
    "status": tables.status,
}


@dataclass(frozen=True)
class Expanded:
    """A page in plain Markdown, what is wrong with it, and what its reader has typed."""

    markdown: str
    faults: tuple[Fault, ...]
    context: Context


def expand(sources: Sources, page: Page) -> Expanded:
    """Expand every directive, value and link of a page; a faulty one stays as it is written."""
    context = Context(sources, page)
    out: list[str] = []
    faults: list[Fault] = []
    for one in scan(page.text):
        if isinstance(one, Fence):
            out += _fence(one)
            continue
        try:
            out += _line(context, one)
        except (BookError, StepError) as error:
            faults.append(Fault(page.path, one.number, str(error)))
            out.append(one.text)
    return Expanded("\n".join(out), tuple(faults), context)


def _fence(fence: Fence) -> list[str]:
    """A block as Markdown knows it: `run` and `sketch` after the language are words of ours."""
    first, *rest = fence.raw
    words = fence.info.split()
    if words[1:2] in ([RUN], [SKETCH]):
        first = first.replace(fence.info, words[0])
    return [first, *rest]


def _line(context: Context, one: Line) -> list[str]:
    if one.kind == "directive":
        return ["", *_directive(context, one.text).split("\n"), ""]
    if one.text.startswith(("<details", "</details")):
        context.folded = one.text[1] != "/"
    line = outside_code(one.text, partial(_prose, context))
    steps = one.kind == "heading" and one.text.endswith("{#steps}") and context.step
    return [line, "", *cards.workspace(context).split("\n")] if steps else [line]


def _prose(context: Context, text: str) -> str:
    """Text without its inline code, which stays as it is."""
    for sign, zh, en in SIGNS:
        if sign in EXPRESSION.sub("", text):
            raise BookError(f"{sign}：{zh}", f"{sign}: {en}")
    found = EXPRESSION.sub(lambda one: evaluate(context.sources, context.language, one[1]), text)
    return resolve(context, found)


def _directive(context: Context, line: str) -> str:
    if line[0].isspace():
        raise BookError(
            "指令要从行首写起", "a directive begins in the first column, here it is indented"
        )
    name, _, rest = inside(line).replace("\t", " ").partition(" ")
    if name not in DIRECTIVES:
        known = ", ".join(DIRECTIVES)
        raise BookError(
            f"没有指令 {name!r}；有：{known}", f"there is no directive {name!r}; there are {known}"
        )
    return DIRECTIVES[name](context, rest)
