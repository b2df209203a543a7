"""Which names a file defines, and which it uses: the ground of the rule "no early code"."""

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .source import Function, Scope, first_line, parse, statements, targets

# Decorators that only wrap a function; any other may register it for somebody who calls it.
PLAIN_DECORATORS = {
    "abstractmethod", "cache", "cached_property", "classmethod", "compile", "contextmanager",
    "dataclass", "deleter", "final", "getter", "inference_mode", "lru_cache", "no_grad",
    "overload", "override", "property", "runtime_checkable", "setter", "staticmethod",
    "total_ordering", "wraps",
}  # fmt: skip
# Bases that call no method of their subclasses by name.
PLAIN_BASES = {
    "ABC", "Enum", "Generic", "IntEnum", "NamedTuple", "Protocol", "StrEnum", "TypedDict",
    *dir(builtins),
}  # fmt: skip
NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
UNNAMED = re.compile(r"_+|__\w+__")


@dataclass(frozen=True)
class Definition:
    """A name that a file defines; uses on its lines `first` to `last` are its own."""

    path: str
    qualname: str
    first: int
    last: int
    annotated_field: bool = False

    @property
    def name(self) -> str:
        """The last part of the qualified name."""
        return self.qualname.split(".")[-1]

    @property
    def dotted(self) -> str:
        """The name as `[ahead]` writes it: `minisgl.core.Batch.out_loc`."""
        module = self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return f"{module}.{self.qualname}"


@lru_cache(maxsize=4096)
def definitions(text: str, path: str) -> tuple[Definition, ...]:
    """Return the functions, classes, methods, fields and constants of a file.

    Left out is what has its user outside the repository: dunder names, functions handed to a
    decorator that registers them, and methods that a foreign base class calls.
    """
    module = parse(text, path)
    found = _Definitions(path, _own_classes(module)).of_body(module.body, "", foreign=False)
    return tuple(one for one in found if not UNNAMED.fullmatch(one.name))


def _own_classes(module: ast.Module) -> frozenset[str]:
    """The classes that a file defines or imports from the package."""
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and _is_of_package(node):
            found.update(alias.asname or alias.name for alias in node.names)
    return frozenset(found)


def _is_of_package(node: ast.ImportFrom) -> bool:
    return node.level > 0 or (node.module or "").split(".")[0] == "minisgl"


class _Definitions:
    """Walks one file; `own` are the classes that are no foreign bases."""

    def __init__(self, path: str, own: frozenset[str]) -> None:
        self._path = path
        self._plain_bases = PLAIN_BASES | own

    def of_body(self, body: list[ast.stmt], prefix: str, *, foreign: bool) -> Iterator[Definition]:
        for node in statements(body):
            if isinstance(node, Function):
                if not foreign and not _is_registered(node):
                    yield self._scope(node, prefix)
                if prefix:
                    yield from self._attributes(node, prefix)
            elif isinstance(node, ast.ClassDef):
                if not _is_registered(node):
                    yield self._scope(node, prefix)
                strange = any(_last_name(base) not in self._plain_bases for base in node.bases)
                yield from self.of_body(node.body, f"{prefix}{node.name}.", foreign=strange)
            elif not foreign or isinstance(node, ast.AnnAssign):
                field = isinstance(node, ast.AnnAssign) and bool(prefix)
                last = node.end_lineno or node.lineno
                for name in targets(node):
                    yield Definition(self._path, prefix + name, node.lineno, last, field)

    def _scope(self, node: Scope, prefix: str) -> Definition:
        last = node.end_lineno or node.lineno
        return Definition(self._path, prefix + node.name, first_line(node), last)

    def _attributes(self, method: Function, prefix: str) -> Iterator[Definition]:
        """What a method sets on self."""
        arguments = [*method.args.posonlyargs, *method.args.args]
        for node in ast.walk(method) if arguments else ():
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                owner = node.value
                if isinstance(owner, ast.Name) and owner.id == arguments[0].arg:
                    yield Definition(self._path, prefix + node.attr, node.lineno, node.lineno)


def _is_registered(node: Scope) -> bool:
    return any(_last_name(decorator) not in PLAIN_DECORATORS for decorator in node.decorator_list)


def _last_name(node: ast.expr) -> str:
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@lru_cache(maxsize=4096)
def uses(text: str, path: str) -> frozenset[tuple[str, int]]:
    """Return (name, line) of all that a file reads, calls, passes by keyword or imports.

    Setting an attribute is no use, and neither is passing a name on: `__all__`, and the imports
    of an `__init__.py`.
    """
    module = parse(text, path)
    passing_on = path.endswith("__init__.py")
    skipped = {
        id(part) for node in module.body if "__all__" in targets(node) for part in ast.walk(node)
    }
    found: set[tuple[str, int]] = set()
    for node in ast.walk(module):
        if id(node) in skipped or (passing_on and isinstance(node, (ast.Import, ast.ImportFrom))):
            continue
        found.update((name, getattr(node, "lineno", 0)) for name in _used_by(node))
    return frozenset(found)


def _used_by(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Load() | ast.Del()):
            return [name]
        case ast.Attribute(attr=name, ctx=ast.Load() | ast.Del()):
            return [name]
        case ast.keyword(arg=str(name)):
            return [name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [alias.name.split(".")[-1] for alias in aliases]
        case ast.MatchClass(kwd_attrs=names):
            return names
        case ast.Constant(value=str(text)) if NAME.fullmatch(text):
            return text.split(".")
        case ast.AnnAssign(annotation=ast.Constant(value=str(text))):
            return re.findall(r"\w+", text)
        case ast.arg(annotation=ast.Constant(value=str(text))):
            return re.findall(r"\w+", text)
        case ast.FunctionDef(returns=ast.Constant(value=str(text))):
            return re.findall(r"\w+", text)
    return []


@lru_cache(maxsize=4096)
def attributes(text: str, path: str) -> frozenset[tuple[str, int]]:
    """Return (name, line) of every attribute that a file reads or sets."""
    nodes = ast.walk(parse(text, path))
    return frozenset((node.attr, node.lineno) for node in nodes if isinstance(node, ast.Attribute))


@lru_cache(maxsize=4096)
def uses_outside_annotations(text: str, path: str, name: str) -> tuple[int, ...]:
    """Return the lines on which a file reads `name` elsewhere than in an annotation."""
    module = parse(text, path)
    allowed: set[int] = set()
    for node in ast.walk(module):
        for part in ("annotation", "returns"):
            found = getattr(node, part, None)
            if isinstance(found, ast.expr):
                allowed.update(id(inner) for inner in ast.walk(found))
    return tuple(
        node.lineno
        for node in ast.walk(module)
        if isinstance(node, ast.Name) and node.id == name and id(node) not in allowed
    )
