"""From a page as it is written to plain Markdown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.book import cards, code, drawings
from tools.book.context import Context
from tools.book.errors import BookError, Fault
from tools.book.links import resolve
from tools.book.pages import DIRECTIVE, Fence, Page, inside, scan
from tools.book.sources import Sources
from tools.book.values import EXPRESSION, evaluate
from tools.steplib import StepError

Directive = Callable[[Context, str], str]

DIRECTIVES: dict[str, Directive] = {
    "facts": cards.facts,
    "tree": code.tree,
    "code": code.code,
    "removed": code.removed,
    "main": code.main,
    "output": code.output,
    "table": cards.bench_table,
    "figure": drawings.figure,
    "problems": cards.problems,
    "test": code.test,
    "diff": cards.diff,
    "roadmap": cards.roadmap,
    "status": cards.status,
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
            out += one.raw
            continue
        try:
            out += _line(context, one.text, one.kind == "directive")
        except (BookError, StepError) as error:
            faults.append(Fault(page.path, one.number, str(error)))
            out.append(one.text)
    return Expanded("\n".join(out), tuple(faults), context)


def _line(context: Context, line: str, directive: bool) -> list[str]:
    if directive:
        return ["", *_directive(context, line).split("\n"), ""]
    if DIRECTIVE.search(line) and line.lstrip().startswith("@@"):
        raise BookError("指令要独占一行", "a directive stands on a line of its own")
    line = EXPRESSION.sub(lambda match: evaluate(context.sources, context.language, match[1]), line)
    return [resolve(context, line)]


def _directive(context: Context, line: str) -> str:
    if line[0].isspace():
        raise BookError(
            "指令要从行首写起", "a directive begins in the first column, here it is indented"
        )
    name, _, rest = inside(line).partition(" ")
    if name not in DIRECTIVES:
        known = ", ".join(DIRECTIVES)
        raise BookError(
            f"没有指令 {name!r}；有：{known}", f"there is no directive {name!r}; there are {known}"
        )
    return DIRECTIVES[name](context, rest)
