"""Turn a finished file into what the reader starts from.

New and changed functions keep their decorators, signature and docstring and lose their body. All
else stays as it is written: the text is cut, never generated from the syntax tree.
"""

import ast
import copy
import io
import tokenize
from collections import defaultdict

from .source import Function, docstring_of, lines_of, parse, scopes


def stub_source(old: str | None, new: str, label: str, path: str = "source") -> str:
    """Return `new` with the bodies of the functions that differ from `old` taken out.

    `label` opens the message of each stub: `raise NotImplementedError("chapter 5: Pool.free")`.
    """
    lines = [line + "\n" for line in lines_of(new)]
    for name, node in reversed(changed_functions(old, new, path)):
        _cut_body(lines, name, node, label)
    return "".join(lines)


def changed_functions(
    old: str | None, new: str, path: str = "source"
) -> list[tuple[str, Function]]:
    """Return (qualified name, node) of the functions of `new` that the reader has to write.

    A function counts when nothing in `old` of that name has the same syntax tree; docstrings,
    comments and layout make no difference. Functions without a body to write do not count.
    """
    known: dict[str, set[str]] = defaultdict(set)
    for name, node in _functions(old or "", path):
        known[name].add(_shape(node))
    found = [
        (name, node)
        for name, node in _functions(new, path)
        if _shape(node) not in known[name] and not _is_empty(node)
    ]
    return sorted(found, key=lambda pair: pair[1].lineno)


def _functions(text: str, path: str) -> list[tuple[str, Function]]:
    found = scopes(parse(text, path).body)
    return [(name, node) for name, node in found if isinstance(node, Function)]


def _shape(node: Function) -> str:
    """The function without docstrings, as text."""
    node = copy.deepcopy(node)
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
    stub = f'raise NotImplementedError("{label}: {name}")'
    header_end = _header_end(lines, node)
    docstring = docstring_of(node)
    first = node.body[1] if docstring else node.body[0]
    end = node.end_lineno or node.lineno
    if first.lineno <= header_end or (docstring and docstring.end_lineno == first.lineno):
        lines[first.lineno - 1 : end] = [_before(lines[first.lineno - 1], first) + stub + "\n"]
        return
    start = docstring.end_lineno if docstring else header_end
    assert start is not None
    end = _with_trailing_comments(lines, end, first.col_offset)
    kept = _before_end(lines[start - 1], docstring) if docstring else lines[start - 1].rstrip("\n")
    lines[start - 1 : end] = [kept + "\n", " " * first.col_offset + stub + "\n"]


def _header_end(lines: list[str], node: Function) -> int:
    """Return the line on which `def …:` ends: where the first logical line of it does."""
    reader = io.StringIO("".join(lines[node.lineno - 1 :])).readline
    for token in tokenize.generate_tokens(reader):
        if token.type == tokenize.NEWLINE:
            return node.lineno + token.start[0] - 1
    return node.lineno


def _before(line: str, statement: ast.stmt) -> str:
    return line.encode()[: statement.col_offset].decode()


def _before_end(line: str, statement: ast.stmt) -> str:
    return line.encode()[: statement.end_col_offset].decode()


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
