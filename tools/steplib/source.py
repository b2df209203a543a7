"""Python source as trees: parsed once per content, with the questions that several rules ask."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from .errors import StepError

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.ClassDef


@lru_cache(maxsize=4096)
def parse(text: str, path: str) -> ast.Module:
    """Parse `text`; StepError with file and line when it is not Python."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise StepError(f"{path}:{error.lineno}: {error.msg}") from None


def decode(content: bytes, path: str) -> str:
    """Decode a source file; StepError when it is not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise StepError(f"{path}: not UTF-8") from None


def lines_of(text: str) -> list[str]:
    """Return the lines as the parser counts them: `splitlines` also cuts at U+2028 and others."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def docstring_of(node: ast.AST) -> ast.Expr | None:
    """Return the statement that is the docstring of a module, class or function, if any."""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            return first if isinstance(first.value.value, str) else None
    return None


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module or class body, also those under if, try and with."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            for part in ("body", "handlers", "orelse", "finalbody"):
                for child in getattr(node, part, []):
                    inner = child.body if isinstance(child, ast.ExceptHandler) else [child]
                    yield from statements(inner)


def scopes(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Scope]]:
    """Yield (qualified name, node) of classes and functions, not those inside a function."""
    for node in statements(body):
        if isinstance(node, Scope):
            name = prefix + node.name
            yield name, node
            if isinstance(node, ast.ClassDef):
                yield from scopes(node.body, name + ".")


def first_line(node: Scope) -> int:
    """Return the line on which a definition begins, its decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def targets(node: ast.stmt) -> list[str]:
    """Return the plain names that an assignment binds."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        found = list(node.targets)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        found = [node.target]
    names: list[str] = []
    for target in found:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        names += [part.id for part in parts if isinstance(part, ast.Name)]
    return names
