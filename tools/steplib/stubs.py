"""Turn a finished file into what the reader starts from.

New and changed functions keep their decorators, signature and docstring and lose their body; what
the reader has of them already comes back under a mark. All else stays as it is written: the text
is cut, never generated from the syntax tree.
"""

import ast
import copy
import io
import itertools
import tokenize
from collections import defaultdict
from functools import lru_cache

from .source import Function, docstring_of, lines_of, parse, scopes


def stub_source(old: str | None, new: str, label: str, path: str = "source") -> str:
    """Return `new` with the bodies of the functions that differ from `old` taken out.

    `label` opens the message of each stub: `raise NotImplementedError("chapter 5: Pool.free")`.
    """
    lines = _lines(new)
    for name, node in reversed(changed_functions(old, new, path)):
        _cut_body(lines, name, node, label)
    return "".join(lines)


def with_bodies(stubs: str, own: str, label: str, path: str = "source") -> str:
    """Return `stubs` in which a function that `own` has too gets the body that it has there.

    A mark opens it: `# chapter 5: change Pool.free`. What shares a line with its header, or lies
    at another depth, stays a stub.
    """
    lines, theirs = _lines(stubs), _lines(own)
    bodies = {}
    for key, node in _numbered(own, path):
        if not _is_empty(node) and (place := _body(theirs, node)):
            blank = itertools.takewhile(lambda line: not line.strip(), theirs[place])
            bodies[key] = (theirs[place][len(list(blank)) :], _indent(node))
    for key, node in reversed(_numbered(stubs, path)):
        name, indent, place = key[0], _indent(node), _body(lines, node)
        body, depth = bodies.get(key, ([], ""))
        if body and depth == indent and place and lines[place] == [_stub(indent, label, name)]:
            lines[place] = [f"{indent}# {label}: change {name}\n", *body]
    return "".join(lines)


def _numbered(text: str, path: str) -> list[tuple[tuple[str, int], Function]]:
    """Return ((name, how many of this name come before), function) in the order of the file."""
    seen: dict[str, int] = defaultdict(int)
    found = []
    for name, node in sorted(_functions(text, path), key=lambda pair: pair[1].lineno):
        found.append(((name, seen[name]), node))
        seen[name] += 1
    return found


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in lines_of(text)]


def _stub(indent: str, label: str, name: str) -> str:
    return f'{indent}raise NotImplementedError("{label}: {name}")\n'


def _indent(node: Function) -> str:
    return " " * node.body[-1].col_offset


@lru_cache(maxsize=4096)
def changed_functions(
    old: str | None, new: str, path: str = "source"
) -> tuple[tuple[str, Function], ...]:
    """Return (qualified name, node) of the functions of `new` that the reader has to write.

    A function counts when nothing in `old` of that name has the same syntax tree; docstrings,
    comments, layout and what the header says of types make no difference: headers are not the
    reader's to write. Functions without a body to write do not count.
    """
    known: dict[str, set[str]] = defaultdict(set)
    for name, node in _functions(old or "", path):
        known[name].add(_shape(node))
    found = [
        (name, node)
        for name, node in _functions(new, path)
        if _shape(node) not in known[name] and not _is_empty(node)
    ]
    return tuple(sorted(found, key=lambda pair: pair[1].lineno))


def _functions(text: str, path: str) -> list[tuple[str, Function]]:
    found = scopes(parse(text, path).body)
    return [(name, node) for name, node in found if isinstance(node, Function)]


def _shape(node: Function) -> str:
    """The function without docstrings and without the types in its header, as text."""
    node = copy.deepcopy(node)
    node.returns = None
    for part in ast.walk(node.args):
        if isinstance(part, ast.arg):
            part.annotation = None
    for inner in ast.walk(node):
        found = docstring_of(inner)
        if found:
            inner.body.remove(found)  # type: ignore[attr-defined]
    return ast.dump(node)


def _is_empty(node: Function) -> bool:
    """Abstract methods, protocols, overloads: a docstring, `...`, pass or NotImplementedError."""
    rest = [statement for statement in node.body if statement is not docstring_of(node)]
    return all(
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Expr) and _is_ellipsis(statement.value))
        or (isinstance(statement, ast.Raise) and "NotImplementedError" in ast.unparse(statement))
        for statement in rest
    )


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _cut_body(lines: list[str], name: str, node: Function, label: str) -> None:
    """Replace the body of `node` in `lines`; the functions after it are already done."""
    place = _body(lines, node)
    if place:
        lines[place] = [_stub(_indent(node), label, name)]
        return
    first = node.body[1 if docstring_of(node) else 0]
    before = lines[first.lineno - 1].encode()[: first.col_offset].decode()
    lines[first.lineno - 1 : node.end_lineno] = [before + _stub("", label, name)]


def _body(lines: list[str], node: Function) -> slice | None:
    """The lines of a body without its docstring, with the comments that open and close it.

    None where there is nothing else, or where it shares a line with the header or the docstring.
    """
    docstring = docstring_of(node)
    rest = node.body[1:] if docstring else node.body
    start = (docstring.end_lineno if docstring else None) or _header_end(lines, node)
    if not rest or rest[0].lineno <= start:
        return None
    return slice(start, _with_trailing_comments(lines, node.end_lineno or 0, rest[0].col_offset))


def _header_end(lines: list[str], node: Function) -> int:
    """Return the line on which `def …:` ends: where the first logical line of it does."""
    reader = io.StringIO("".join(lines[node.lineno - 1 :])).readline
    for token in tokenize.generate_tokens(reader):
        if token.type == tokenize.NEWLINE:
            return node.lineno + token.start[0] - 1
    return node.lineno


def _with_trailing_comments(lines: list[str], end: int, indent: int) -> int:
    """Comments that close a body give the solution away as much as the body does."""
    reach = end
    for number in range(end, len(lines)):
        line = lines[number]
        if line.strip() and not (
            line.lstrip().startswith("#") and len(line) - len(line.lstrip()) >= indent
        ):
            break
        if line.strip():
            reach = number + 1
    return reach
