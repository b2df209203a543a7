"""Play the reader: type what a finished page shows, and see what files that gives.

This knows a page only as its reader does: titles of code blocks and the code below them. It shares
no code with what wrote them (`reader`, `outline`, `code`), so a title that misleads, a line that is
missing or one that is out of place shows as a file that differs from the step's.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools.book.orders import HEAD, Order, ReplayError, orders

Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Outcome:
    """What typing a page gives.

    Unified diffs, by path, of the files that differ from the step's; the blocks and lines that were
    typed, and the lines that were taken over because the page lists them.
    """

    differences: dict[str, str]
    blocks: int
    lines: int
    copied: int


class Typist:
    """A folder of files in which a reader types."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = {path: _lines(text) for path, text in files.items()}

    def follow(self, order: Order) -> None:
        """Do what one block asks for; ReplayError where that is not possible."""
        if order.act in ("file", "start"):
            if order.act == "start" and order.path in self.files:
                raise ReplayError(f"{order.path} is there already, and a block calls it new")
            self.files[order.path] = list(order.body)
            return
        if order.path not in self.files:
            raise ReplayError(f"{order.path} is not there, and a block changes it")
        if order.act == "delete":
            self._delete(order)
        elif order.act == "replace":
            first, last = self._span(order.path, order.what)
            self.files[order.path][first - 1 : last] = order.body
        else:
            self._insert(order)

    def _delete(self, order: Order) -> None:
        if not order.what:
            del self.files[order.path]
            return
        first, last = self._span(order.path, order.what)
        lines = self.files[order.path]
        while first > 1 and not lines[first - 2]:
            first -= 1
        del lines[first - 1 : last]

    def _insert(self, order: Order) -> None:
        first, last = self._span(order.path, order.other)
        # As everywhere in the code: members are one blank line apart, what stands at the top two.
        top = order.what.removesuffix(f".{HEAD}")
        blank = [""] * (1 if "." in top else 2)
        at, new = {
            "after": (last, [*blank, *order.body]),
            "before": (first - 1, [*order.body, *blank]),
            "below": (last, order.body),
            "above": (first - 1, order.body),
        }[order.act]
        self.files[order.path][at:at] = new

    def _span(self, path: str, name: str) -> tuple[int, int]:
        found = span(self.files[path], name)
        if found is None:
            raise ReplayError(f"{path} has no {name}, and a block builds on it")
        return found

    def copy(self, path: str, name: str, source: str) -> int:
        """Take over code that the page leaves out and lists; return how many lines it has."""
        theirs = _lines(source)
        if path not in self.files or not name:
            self.files[path] = theirs
            return len(theirs)
        there = span(theirs, name)
        if there is None:
            raise ReplayError(f"{path} has no {name}, which is listed as not shown")
        body = theirs[there[0] - 1 : there[1]]
        mine = span(self.files[path], name)
        if mine:
            self.files[path][mine[0] - 1 : mine[1]] = body
        else:
            other = _neighbour(theirs, name, self.files[path])
            self._insert(Order("after", path, name, other, body))
        return len(body)


def _lines(text: str) -> list[str]:
    return text.split("\n")[:-1] if text.endswith("\n") else text.split("\n")


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n" if lines != [""] else ""  # an empty file has no line to end


def _neighbour(theirs: list[str], name: str, mine: list[str]) -> str:
    """The nearest code above `name` that is in both."""
    outer = name.rpartition(".")[0]
    names = [one for one, *_ in _pieces(theirs, outer)]
    for other in reversed(names[: names.index(name)]):
        if span(mine, other):
            return other
    return f"{outer}.{HEAD}" if outer else HEAD


def span(lines: list[str], name: str) -> tuple[int, int] | None:
    """First and last line of the code that a title names, its decorators and comments included."""
    outer, _, last = name.rpartition(".")
    pieces = _pieces(lines, outer)
    for one, first, end in pieces:
        if one == name:
            return first, end
    if last == HEAD:
        whole = span(lines, outer) if outer else (1, len(lines))
        return whole  # nothing is defined in it: all of it is the top
    return _statement(lines, outer, last)


def _body(lines: list[str], outer: str) -> tuple[list[ast.stmt], int, int] | None:
    """The statements of the file or of a class, and its lines."""
    body, first, last = ast.parse("\n".join(lines)).body, 1, len(lines)
    for name in filter(None, outer.split(".")):
        around = "" if "." not in outer else outer.rpartition(".")[0]
        inner = next((n for n in body if isinstance(n, ast.ClassDef) and n.name == name), None)
        if inner is None:
            return None
        here = span(lines, f"{around}.{name}" if around and around != name else name)
        body, (first, last) = inner.body, here or (inner.lineno, inner.end_lineno or 0)
    return body, first, last


def _pieces(lines: list[str], outer: str) -> list[tuple[str, int, int]]:
    """(name, first, last) of the head and of all that follows it in the file or class."""
    found = _body(lines, outer)
    if found is None:
        return []
    body, first, last = found
    start = next((i for i, node in enumerate(body) if isinstance(node, Definition)), len(body))
    if start == len(body):
        return []
    prefix = f"{outer}." if outer else ""
    begins = [(f"{prefix}{HEAD}", first)]
    before: ast.stmt | None = None
    for node in body[start:]:
        if before is None or not _together(before, node):
            begins.append((prefix + _label(node), _with_comments(lines, node, first)))
        before = node
    ends = [begin - 1 for _, begin in begins[1:]] + [last]
    pieces = []
    for (name, begin), end in zip(begins, ends, strict=True):
        while end > begin and not lines[end - 1].strip():
            end -= 1
        if end >= begin and any(lines[begin - 1 : end]):
            pieces.append((name, begin, end))
    return pieces


def _together(before: ast.stmt, node: ast.stmt) -> bool:
    """Definitions of one name are one piece, and so are statements that follow one another."""
    if isinstance(node, Definition):
        return isinstance(before, Definition) and before.name == node.name
    return not isinstance(before, Definition)


def _label(node: ast.stmt) -> str:
    if isinstance(node, Definition):
        return node.name
    if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
        return "__main__"
    names = _bound(node)
    return names[0] if names else f"line {node.lineno}"


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        goals: Iterable[ast.expr] = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        goals = [node.target]
    else:
        return []
    flat = [part for goal in goals for part in getattr(goal, "elts", [goal])]
    return [part.id for part in flat if isinstance(part, ast.Name)]


def _with_comments(lines: list[str], node: ast.stmt, floor: int) -> int:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)])
    comment = re.compile(rf" {{0,{node.col_offset}}}#")
    while first > floor and comment.match(lines[first - 2]):
        first -= 1
    return first


def _statement(lines: list[str], outer: str, name: str) -> tuple[int, int] | None:
    """An assignment at the top of a file or class."""
    found = _body(lines, outer)
    for node in found[0] if found else []:
        if name in _bound(node):
            return _with_comments(lines, node, 1), node.end_lineno or node.lineno
    return None


def replay(
    markdown: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    listed: Iterable[tuple[str, str]] = (),
) -> Outcome:
    """Type a page on top of `before`, and compare with `after`.

    `listed`: (path, symbol) of what the page says it leaves out. ReplayError when a block cannot
    be followed.
    """
    typist = Typist(before)
    roots = tuple({path.partition("/")[0] + "/" for path in {*before, *after}})
    blocks = lines = 0
    for order in orders(markdown, roots):
        typist.follow(order)
        blocks, lines = blocks + 1, lines + len(order.body)
    copied = sum(typist.copy(path, name, after[path]) for path, name in listed)
    return Outcome(_compare(typist, after), blocks, lines, copied)


def _compare(typist: Typist, after: Mapping[str, str]) -> dict[str, str]:
    typed = {path: _text(lines) for path, lines in typist.files.items()}
    found: dict[str, str] = {}
    for path in sorted({*typed, *after}):
        mine, theirs = typed.get(path), after.get(path)
        if mine != theirs:
            found[path] = "\n".join(
                difflib.unified_diff(
                    _lines(mine or ""), _lines(theirs or ""), "typed", "step", lineterm="", n=1
                )
            )
    return found
