"""A Python file cut into named parts: the pieces in which a page shows code.

Every line that is not blank belongs to exactly one part, so a reader who has typed all parts has
the file. A part is a function, a method, a class without methods, `@head` (what stands before the
first definition), `Class.@head` (the class line, docstring and fields before the first method), or
statements between definitions, named by what the first of them assigns. The comment lines above a
definition are its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tools.book.errors import BookError
from tools.steplib.source import Scope, first_line, lines_of, parse, statements, targets

HEAD = "@head"


@dataclass(frozen=True)
class Part:
    """Lines `first` to `last` (from 1) of a file under their name.

    `kind` is "head", "definition" (set apart by blank lines), or "line" for an assignment inside a
    head, whose neighbours are the lines above and below it.
    """

    name: str
    first: int
    last: int
    kind: str = "definition"

    @property
    def outer(self) -> str:
        """The class around a member, "" at the top of the file."""
        return self.name.rpartition(".")[0]

    def text(self, source: str) -> str:
        """The lines of this part."""
        return "\n".join(lines_of(source)[self.first - 1 : self.last])


@lru_cache(maxsize=4096)
def parts(source: str, path: str) -> tuple[Part, ...]:
    """Return the parts of a file from top to bottom; a file of another kind is one head."""
    lines = lines_of(source)
    if not path.endswith(".py"):
        return (Part(HEAD, 1, len(lines), "head"),)
    return tuple(_cut(parse(source, path).body, lines, 1, len(lines), ""))


def _cut(
    body: list[ast.stmt], lines: list[str], first: int, last: int, outer: str
) -> Iterator[Part]:
    """Cut lines `first` to `last`, which hold the statements of `body`."""
    prefix = f"{outer}." if outer else ""
    groups = _groups(body)
    level = body[0].col_offset if body else 0
    begins = [first]
    for before, group in zip([None, *groups], groups, strict=False):
        begins.append(_begin(lines, _end(before) if before else first - 1, _start(group[0]), level))
    begins = [*begins[1:], last + 1]
    if not groups or begins[0] > first:
        end = _trim(lines, first, (begins[0] if groups else last + 1) - 1)
        if end >= first:
            yield Part(prefix + HEAD, first, end, "head")
    for group, start, after in zip(groups, begins, begins[1:], strict=False):
        end = _trim(lines, start, after - 1)
        node = group[0]
        if isinstance(node, ast.ClassDef) and any(isinstance(one, Scope) for one in node.body):
            yield from _cut(node.body, lines, start, end, prefix + node.name)
        else:
            yield Part(prefix + _name(node), start, end)


def _groups(body: list[ast.stmt]) -> list[list[ast.stmt]]:
    """What follows the head: definitions (those of one name together) and runs of statements."""
    found: list[list[ast.stmt]] = []
    for node in body:
        if not found and not isinstance(node, Scope):
            continue
        last = found[-1][-1] if found else None
        if isinstance(node, Scope):
            joins = isinstance(last, Scope) and last.name == node.name
        else:
            joins = last is not None and not isinstance(last, Scope)
        if joins:
            found[-1].append(node)
        else:
            found.append([node])
    return found


def _name(node: ast.stmt) -> str:
    if isinstance(node, Scope):
        return node.name
    names = targets(node)
    if names:
        return names[0]
    if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
        return "__main__"
    return f"line {node.lineno}"


def _start(node: ast.stmt) -> int:
    return first_line(node) if isinstance(node, Scope) else node.lineno


def _end(group: list[ast.stmt]) -> int:
    return group[-1].end_lineno or group[-1].lineno


def _begin(lines: list[str], end_before: int, start: int, level: int) -> int:
    """Where a part begins whose first statement is on line `start`: with the comments above it.

    Comments that are indented deeper, or set off by a blank line, close what came before.
    """
    begin = start
    while begin - 1 > end_before:
        line = lines[begin - 2]
        if not re.match(r" *#", line) or len(line) - len(line.lstrip()) > level:
            break
        begin -= 1
    return begin


def _trim(lines: list[str], first: int, last: int) -> int:
    while last >= first and not lines[last - 1].strip():
        last -= 1
    return last


def locate(source: str, symbol: str, path: str) -> Part:
    """Return the lines that a symbol names; BookError, with the names there are, without any.

    Symbols are the names of parts and, beyond these, classes with methods as a whole, and single
    assignments inside a head (`CONSTANT`, `Class.field`).
    """
    found = find(source, symbol, path)
    if found is None:
        there = ", ".join(names(source, path)) or "–"
        raise BookError(
            f"{path} 里没有 {symbol}；有：{there}", f"{path} has no {symbol}; it has {there}"
        )
    return found


def find(source: str, symbol: str, path: str) -> Part | None:
    """Like `locate`; None where there is no such symbol."""
    every = parts(source, path)
    for part in every:
        if part.name == symbol:
            return part
    inside = [part for part in every if part.name.startswith(f"{symbol}.")]
    if inside:
        return Part(symbol, inside[0].first, inside[-1].last)
    outer, _, name = symbol.rpartition(".")
    if name == HEAD:  # a class without methods is all head
        whole = find(source, outer, path) if outer else None
        return Part(symbol, whole.first, whole.last, "head") if whole else None
    return _assignment(source, symbol, path)


def _assignment(source: str, symbol: str, path: str) -> Part | None:
    if not path.endswith(".py"):
        return None
    body = parse(source, path).body
    *outer, name = symbol.split(".")
    for part in outer:
        classes = [n for n in statements(body) if isinstance(n, ast.ClassDef) and n.name == part]
        body = classes[0].body if classes else []
    lines = lines_of(source)
    for node in body:
        if name in targets(node):
            begin = _begin(lines, 0, node.lineno, node.col_offset)
            return Part(symbol, begin, node.end_lineno or node.lineno, "line")
    return None


def names(source: str, path: str) -> list[str]:
    """Return the symbols a page may show, classes with methods included."""
    found: dict[str, None] = {}
    for part in parts(source, path):
        if part.outer:
            found[part.outer] = None
        found[part.name] = None
    return list(found)
