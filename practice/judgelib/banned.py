"""What a problem bans: the names that it lists, and the ways to a name that nobody sees written.

`getattr(F, "scaled" + rest)`, `vars(F)[…]`, `exec(…)`, another library with the same function: a
list of names is worth nothing beside them. An exercise that bans names needs none of these.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from tools.steplib.source import Scope

MAX_DOTS = 8
# What may be imported beside a banned name; any of their submodules too.
OPEN = {"__future__", "abc", "array", "bisect", "collections", "contextlib", "copy", "dataclasses"}
OPEN |= {"enum", "functools", "heapq", "itertools", "math", "numbers", "operator", "os", "random"}
OPEN |= {"re", "statistics", "string", "struct", "time", "typing", "warnings"}
OPEN |= {"einops", "numpy", "torch"}
NAMES = {"__builtins__", "__import__", "__loader__", "__spec__", "builtins", "importlib"}
NAMES |= {"__dict__", "__getattr__", "__getattribute__", "__globals__", "__self__"}
NAMES |= {"attrgetter", "delattr", "dir", "getattr", "methodcaller", "setattr"}
NAMES |= {"globals", "inspect", "locals", "sys", "vars"}
NAMES |= {"compile", "eval", "exec", "jit", "library", "open", "ops", "pickle"}


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


def detours(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """(what is written, its line) for every way around a banned name."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    plain = {id(call.func) for call in calls if _gets_a_written_name(call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in NAMES and id(node) not in plain:
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and (node.attr in NAMES or _is_private(node)):
            yield f".{node.attr}", node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if not _is_open(alias.name):
                    yield f"import {alias.name}", node.lineno
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if not _is_open(node.module or "") or not _is_open_name(alias.name):
                    yield f"from {node.module} import {alias.name}", node.lineno


def _gets_a_written_name(call: ast.Call) -> bool:
    """Whether this is `getattr(x, "name")`, whose name is there to be read."""
    name = call.args[1] if len(call.args) > 1 else None
    is_getattr = isinstance(call.func, ast.Name) and call.func.id == "getattr"
    return is_getattr and isinstance(name, ast.Constant)


def _is_private(node: ast.Attribute) -> bool:
    """Whether this is `x._name`, but for one's own `self._name`."""
    own = isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr.startswith("_") and not node.attr.startswith("__") and not own


def _is_open(module: str) -> bool:
    first, *rest = module.split(".")
    return first in OPEN and all(map(_is_open_name, rest))


def _is_open_name(name: str) -> bool:
    return name != "*" and name not in NAMES and not name.startswith("_")


def _mentions(node: ast.AST, last: Collection[str]) -> Iterator[str]:
    """The dotted names that a node stands for; a text counts too, for `getattr`.

    Of attributes only those whose last part is among `last`.
    """
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        if node.attr in last:
            yield _dotted(node)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.MatchClass):
        yield from node.kwd_attrs
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 100:
        yield node.value


def _dotted(node: ast.expr) -> str:
    """The last names of `a.b.c`: a chain of thousands is read once for each of its parts."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < MAX_DOTS:
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))
