"""Links into the sources and to problems: `[text](code:minisgl/core.py:Req)`, `problem:ID`."""

from __future__ import annotations

import re

from practice.judgelib.text import JudgeError
from tools.book.context import Context
from tools.book.errors import BookError
from tools.book.outline import find, names
from tools.steplib import StepError, tree
from tools.steplib.names import definitions

LINK = re.compile(r"\]\((code|problem):([^)\s]+)\)")


def resolve(context: Context, line: str) -> str:
    """Return a line with its links to sources and problems made into addresses."""
    return LINK.sub(lambda match: f"]({_address(context, match[1], match[2])})", line)


def _address(context: Context, kind: str, target: str) -> str:
    if kind == "problem":
        try:
            problem = context.sources.problems[target]
        except JudgeError as error:
            raise BookError(error.text.zh, error.text.en) from None
        return context.sources.blob(
            f"practice/problems/{problem.id}/statement.{context.language}.md"
        )
    path, _, symbol = target.partition(":")
    number = context.step.number if context.step else context.sources.book.last.number
    versions = tree(context.sources.book, number)
    place = path
    if path in versions:
        place = versions[path].location.relative_to(context.sources.root).as_posix()
    source = context.sources.read(place)
    if not symbol:
        return context.sources.blob(place)
    first, last = _lines(source, symbol, path)
    return context.sources.blob(place, f"L{first}-L{last}" if last > first else f"L{first}")


def _lines(source: str, symbol: str, path: str) -> tuple[int, int]:
    """The lines of a symbol, or of the assignment that gives an object this attribute."""
    part = find(source, symbol, path)
    if part:
        return part.first, part.last
    try:
        for one in definitions(source, path):
            if one.qualname == symbol:
                return one.first, one.last
    except StepError as error:
        raise BookError(str(error), str(error)) from None
    there = ", ".join(names(source, path))
    raise BookError(
        f"{path} 里没有 {symbol}；有：{there}", f"{path} has no {symbol}; it has {there}"
    )
