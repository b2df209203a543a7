"""Functions of a source: taken out, compared, and put into another; all on texts alone."""

from __future__ import annotations

import ast
import textwrap

from tools.steplib import symbol_source
from tools.steplib.source import Scope, first_line, lines_of, parse, scopes


def functions(text: str) -> dict[str, Scope]:
    """Qualified name -> class or function of a source."""
    return dict(scopes(parse(text, "source").body))


def function(text: str, symbol: str) -> str:
    """The text of one of them, as if it stood at the top."""
    return textwrap.dedent(symbol_source(text, symbol).text)


def cut(text: str, node: ast.stmt) -> str:
    """The text of a statement with its decorators, as if it stood at the top."""
    first = first_line(node) if isinstance(node, Scope) else node.lineno
    return textwrap.dedent("\n".join(lines_of(text)[first - 1 : node.end_lineno]))


def same(one: str, other: str) -> bool:
    """Whether two functions differ in nothing but how they are written."""
    return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))


def exchanged(base: str, name: str, text: str) -> str:
    """`base` with `text` in the place of a function that it has."""
    lines, node = lines_of(base), functions(base)[name]
    indented = textwrap.indent(text, " " * node.col_offset)
    lines[first_line(node) - 1 : node.end_lineno] = indented.split("\n")
    return "\n".join(lines) + "\n"


def added(base: str, name: str, text: str) -> str:
    """`base` with a method at the end of the class that `name` begins with."""
    lines, last = lines_of(base), functions(base)[name.rpartition(".")[0]].body[-1]
    end = last.end_lineno or 0
    lines[end:end] = ["", *textwrap.indent(text, " " * last.col_offset).split("\n")]
    return "\n".join(lines) + "\n"


def with_extra(base: str, extra: list[str]) -> str:
    """`base` with helpers and imports in front of its first class or function."""
    lines = lines_of(base)
    body = parse(base, "source").body
    first = min(first_line(node) for node in body if isinstance(node, Scope))
    lines[first - 1 : first - 1] = [*"\n\n".join(extra).split("\n"), "", ""]
    return "\n".join(lines) + "\n"
