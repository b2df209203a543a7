"""Find a symbol in a source file and cut out its text."""

import ast
from dataclasses import dataclass

from .errors import StepError
from .source import Scope, first_line, lines_of, parse, statements, targets


@dataclass(frozen=True)
class Symbol:
    """The lines `first` to `last` (from 1) of a file, and their text."""

    text: str
    first: int
    last: int


def symbol_source(text: str, symbol: str, path: str = "source") -> Symbol:
    """Return `Class`, `Class.method`, `function`, a constant or a field with its decorators.

    All definitions of the name count (overloads, a property and its setter): the text runs from
    the first to the last. StepError, with the names there are, when there is none.
    """
    body = parse(text, path).body
    *outer, name = symbol.split(".")
    for part in outer:
        classes = [
            node
            for node in statements(body)
            if isinstance(node, ast.ClassDef) and node.name == part
        ]
        body = classes[0].body if classes else []
    found = [node for node in statements(body) if name in _names(node)]
    if not found:
        raise StepError(f"{path} has no {symbol}; it has {', '.join(_all_names(text, path))}")
    starts = [first_line(node) if isinstance(node, Scope) else node.lineno for node in found]
    first, last = min(starts), max(node.end_lineno or node.lineno for node in found)
    return Symbol("\n".join(lines_of(text)[first - 1 : last]), first, last)


def _names(node: ast.stmt) -> list[str]:
    return [node.name] if isinstance(node, Scope) else targets(node)


def _all_names(text: str, path: str) -> list[str]:
    found: list[str] = []
    for node in statements(parse(text, path).body):
        found += [name for name in _names(node) if name not in found]
    return found
