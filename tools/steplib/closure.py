"""What a file needs: the files of a step that its imports, and the files it names, lead to.

`files` is always path -> content of a whole step folder (`minisgl/`, `examples/`, `tests/`).
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from .source import decode, docstring_of, first_line, lines_of, parse, statements, targets

PACKAGE = "minisgl"
SEARCH = ("", "tests/", "examples/")
LATE = ":__getattr__"  # after a path: not the module, but what it runs when it is asked for a name


@dataclass(frozen=True)
class Import:
    """`from module import name` (`name` None: `import module`); `typing`: for annotations only."""

    module: str
    name: str | None
    line: int
    typing: bool

    @property
    def dotted(self) -> str:
        """The whole name that the import asks for."""
        return f"{self.module}.{self.name}" if self.name else self.module


@lru_cache(maxsize=4096)
def imports(text: str, path: str) -> tuple[Import, ...]:
    """Return every import of a file, also those inside functions."""
    found: list[Import] = []
    typing_lines = _typing_lines(parse(text, path))
    for node in ast.walk(parse(text, path)):
        if isinstance(node, ast.Import):
            asked: list[tuple[str, str | None]] = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, path)
            asked = [(module, alias.name) for alias in node.names]
        else:
            continue
        typing = node.lineno in typing_lines
        found += [Import(module, name, node.lineno, typing) for module, name in asked]
    return tuple(found)


def _typing_lines(module: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.If) and ast.unparse(node.test).split(".")[-1] == "TYPE_CHECKING":
            for child in node.body:
                lines.update(range(child.lineno, (child.end_lineno or child.lineno) + 1))
    return lines


def _absolute(node: ast.ImportFrom, path: str) -> str:
    if not node.level:
        return node.module or ""
    folder = PurePosixPath(path).parts[: -node.level]
    return ".".join([*folder, *([node.module] if node.module else [])])


def module_file(files: Mapping[str, bytes], dotted: str) -> str | None:
    """Return the file of `files` that module `dotted` is, if it is one of them."""
    base = dotted.replace(".", "/")
    for place in SEARCH:
        for path in (f"{place}{base}.py", f"{place}{base}/__init__.py"):
            if path in files:
                return path
    return None


@lru_cache(maxsize=4096)
def bindings(text: str, path: str) -> frozenset[str]:
    """Return the names that a module binds at its top level."""
    found: set[str] = set()
    for node in statements(parse(text, path).body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        else:
            found.update(targets(node))
    return frozenset(found)


def missing(files: Mapping[str, bytes], path: str) -> Iterator[Import]:
    """Yield the imports of the package in `path` that find nothing in `files`."""
    for wanted in imports(decode(files[path], path), path):
        if wanted.module.split(".")[0] == PACKAGE and not provides(files, wanted):
            yield wanted


def provides(files: Mapping[str, bytes], wanted: Import) -> bool:
    """Say whether `files` has the module, and the name in it, that an import asks for."""
    path = module_file(files, wanted.module)
    if path is None:
        return False
    if wanted.name in (None, "*") or module_file(files, wanted.dotted):
        return True
    return bool({wanted.name, "__getattr__"} & bindings(decode(files[path], path), path))


def closure(files: Mapping[str, bytes], roots: Iterable[str]) -> set[str]:
    """Return the roots and every file that may run, or be read, when they run.

    An import for annotations only does not run, and a module's `__getattr__` only where a file
    asks the module itself for a name: a test of one layer does not lead to all of them.
    """
    seen: set[str] = set()
    todo = list(roots)
    while todo:
        place = todo.pop()
        if place.removesuffix(LATE) in files and place not in seen:
            seen.add(place)
            todo += _neighbours(files, place)
    return seen & set(files)


def _neighbours(files: Mapping[str, bytes], place: str) -> Iterator[str]:
    path = place.removesuffix(LATE)
    if not path.endswith(".py"):
        text = files[path].decode("utf-8", "replace")
        yield from (data for data in _data_files(files) if PurePosixPath(data).name in text)
        return
    text = _parts(decode(files[path], path), path)[place != path]
    for wanted in imports(text, path):
        if not wanted.typing:
            yield from _chain(files, wanted.dotted)
            yield from _asked(files, wanted)
    yield from _named(files, texts_of(text, path))


@lru_cache(maxsize=4096)
def _parts(text: str, path: str) -> tuple[str, str]:
    """Split a module's text: all but its `__getattr__`, and that function."""
    for node in parse(text, path).body:
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            lines, late = lines_of(text), slice(first_line(node) - 1, node.end_lineno)
            function = "\n".join(lines[late])
            del lines[late]
            return "\n".join(lines), function
    return text, ""


def _asked(files: Mapping[str, bytes], wanted: Import) -> Iterator[str]:
    """The `__getattr__` of the module whose names an import asks for, or binds."""
    # `import a.b` binds `a`, whose names can then be read.
    path = module_file(files, wanted.module if wanted.name else wanted.module.split(".")[0])
    if path:
        yield path + LATE


def _chain(files: Mapping[str, bytes], dotted: str) -> Iterator[str]:
    """A module brings the `__init__.py` of every package around it."""
    parts = dotted.split(".")
    for length in range(1, len(parts) + 1):
        found = module_file(files, ".".join(parts[:length]))
        if found:
            yield found


def _named(files: Mapping[str, bytes], texts: frozenset[str]) -> Iterator[str]:
    """Entry points and data files have no import: a text in the code names them."""
    joined = "\n".join(texts)
    for path in _data_files(files):
        if PurePosixPath(path).name in joined:
            yield path
    for path in files:
        if path.startswith("examples/") and PurePosixPath(path).name in joined:
            yield path
    for match in re.finditer(rf"(-m |from |import )?({PACKAGE}(?:\.\w+)*)", joined):
        entry = match[1] == "-m " or "-m" in texts
        if entry or match[1] or "." in match[2]:  # the word alone is a folder's name
            yield from _chain(files, match[2])
        if entry:
            yield from _chain(files, match[2] + ".__main__")
    for match in re.finditer(rf"from ({PACKAGE}[\w.]*) import", joined):
        yield from _asked(files, Import(match[1], "*", 0, False))


def _data_files(files: Mapping[str, bytes]) -> list[str]:
    return [path for path in files if path.startswith(PACKAGE) and not path.endswith(".py")]


@lru_cache(maxsize=4096)
def texts_of(text: str, path: str) -> frozenset[str]:
    """Return the string constants of a file, docstrings left out."""
    module = parse(text, path)
    docstrings = {id(found.value) for node in ast.walk(module) if (found := docstring_of(node))}
    return frozenset(
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
    )
