"""The names that a problem bans, where a submission writes them: a friendly word, and early.

It is no wall, and asks about nothing but these names. In the box the banned functions of torch are
not there (`inbox.absent`); a ban of anything else is a rule that nobody enforces.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from tools.steplib.source import Scope

MAX_DOTS = 8


def uses(tree: ast.Module, banned: Collection[str]) -> Iterator[tuple[str, int]]:
    """(the banned name, its line) for each of its uses, but for the reader's own of that name."""
    own = {node.name for node in tree.body if isinstance(node, Scope)}
    last = {name.rpartition(".")[2] for name in banned}
    for node in ast.walk(tree) if last else ():
        for name in _mentions(node, last):
            if isinstance(node, ast.Name) and name in own:
                continue
            for one in banned:
                if name == one or name.endswith("." + one):
                    yield one, getattr(node, "lineno", 0)


def _mentions(node: ast.AST, last: Collection[str]) -> Iterator[str]:
    """The dotted names that a node stands for; of attributes those that end as one of `last`."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        if node.attr in last:
            yield _dotted(node)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)


def _dotted(node: ast.expr) -> str:
    """The last names of `a.b.c`: a chain of thousands is read once for each of its parts."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < MAX_DOTS:
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))
