"""Problems in a step's tree: the starter, the files of the box, and replacements of symbols.

A replacement is a file with only what differs from the step's own: functions, methods in their
classes, and helpers and imports that these need.

    # Copies the cached prefix instead of sharing it.
    # caught by: basic
    class RadixTree:
        def _split(self, node, length):
            …

Problems of one file keep each other's secrets: what another one asks for is in a starter as that
one's own starter has it, a stub or a fault. The box gets the right code where the reader leaves it.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

from practice.judgelib import patches
from practice.judgelib.catalogue import Place, Problem, fault, load_catalogue
from tools.steplib import Book, StepError, load_steps, package_files, stub_source, symbol_source
from tools.steplib.source import Function, lines_of, scopes
from tools.steplib.source import parse as parse_source

PLANTED = "planted.py"


@lru_cache(maxsize=4)
def book_of(root: Path) -> Book:
    """The steps of a repository, read once per process."""
    return load_steps(root)


@lru_cache(maxsize=64)
def tree_of(root: Path, number: int) -> dict[str, str]:
    """Path -> text of the package at a step; do not change it."""
    files = package_files(book_of(root), number)
    return {path: data.decode() for path, data in files.items() if path.endswith(".py")}


def place_of(problem: Problem) -> Place:
    """Where in which step the reader writes."""
    assert problem.step is not None, "only engine and bug problems have a step"
    return problem.step


def root_of(problem: Problem) -> Path:
    """The repository that a problem's folder lies in."""
    return problem.folder.resolve().parents[2]


def has_step(problem: Problem) -> bool:
    """Whether the step that the problem needs is in this checkout."""
    if problem.step is None:
        return True
    return problem.step.number in {step.number for step in book_of(root_of(problem))}


def reference(problem: Problem) -> str:
    """The step's own version of the file: the solution of an `engine` or `bug` problem."""
    place = place_of(problem)
    files = tree_of(root_of(problem), place.number)
    if place.path not in files:
        text = f"step {place.number} has no {place.path}"
        raise fault(problem.folder, f"第 {place.number} 步没有 {place.path}", text)
    found = dict(scopes(parse_source(files[place.path], place.path).body))
    for symbol in place.symbols:
        if symbol not in found:
            text = f"{place.path} of step {place.number} has no {symbol}"
            raise fault(problem.folder, f"第 {place.number} 步的 {place.path} 没有 {symbol}", text)
    return files[place.path]


def starter(problem: Problem) -> str:
    """What the reader gets: starter.py, the step's file with stubs, or with its planted fault."""
    if problem.step is None:
        return problem.read("starter.py")
    text = _to_work_on(problem)
    for symbol, other in hidden(problem).items():
        text = patches.exchanged(text, symbol, other)
    return text


def _to_work_on(problem: Problem) -> str:
    """The step's file with what the problem asks for missing, or wrong."""
    if problem.kind == "bug":
        return replaced(problem, problem.read(f"mutants/{PLANTED}"))
    return stubbed(reference(problem), place_of(problem), problem.id)


def _asked(problem: Problem) -> list[str]:
    """What is missing or wrong in the problem's file; `symbols` of a `bug` tell no such thing."""
    if problem.kind == "engine":
        return list(place_of(problem).symbols)
    known = patches.functions(reference(problem))
    planted = patches.functions(problem.read(f"mutants/{PLANTED}")).items()
    return [name for name, node in planted if isinstance(node, Function) and name in known]


def hidden(problem: Problem) -> dict[str, str]:
    """Symbol -> what the starter has in its place, for all that others ask for in this file."""
    found: dict[str, str] = {}
    own = _asked(problem)
    for other in neighbours(problem):
        text = _to_work_on(other)
        for symbol in _asked(other):
            if symbol not in own:
                found.setdefault(symbol, patches.function(text, symbol))
    return found


def neighbours(problem: Problem) -> list[Problem]:
    """The other problems in the same file of the same step."""
    place = place_of(problem)
    return [
        one
        for one in _problems(root_of(problem))
        if one.step and (one.step.number, one.step.path) == (place.number, place.path)
        if one.id != problem.id
    ]


@lru_cache(maxsize=4)
def _problems(root: Path) -> tuple[Problem, ...]:
    return load_catalogue(root).problems


def _completed(problem: Problem, source: str) -> str:
    """A submission with the right code after it for what it has left as the starter hides it.

    It stands at the end, so that the lines of a traceback remain the reader's own.
    """
    right, known = [], patches.functions(source)
    for symbol, text in hidden(problem).items():
        if symbol in known and patches.same(patches.function(source, symbol), text):
            code = patches.function(reference(problem), symbol)
            owner, _, name = symbol.rpartition(".")
            right.append(f"{code}\n\n\n{symbol} = {name}\ndel {name}" if owner else code)
    return "\n\n\n".join([source, *right]) if right else source


def solution(problem: Problem) -> str:
    """The reference solution as the reader would have written it."""
    return reference(problem) if problem.step else problem.read("solution.py")


def shown_solution(problem: Problem) -> str:
    """The reference solution to read: of a step's file only the symbols that were to be written."""
    text = solution(problem)
    if not problem.step:
        return text.rstrip("\n")
    place = problem.step
    parts = [(symbol, symbol_source(text, symbol).text) for symbol in place.symbols]
    return "\n\n".join(f"# {place.path}, {symbol}\n{part}" for symbol, part in parts)


def variant(problem: Problem, text: str) -> str:
    """An alternative or a mutant as a whole submission."""
    return replaced(problem, text) if problem.step else text


def box_files(problem: Problem, source: str) -> dict[str, str]:
    """Path -> text of all that a submission needs inside the box."""
    files = {"submission.py": source}
    if problem.step:
        files = dict(tree_of(root_of(problem), problem.step.number))
        files[problem.step.path] = _completed(problem, source)
    if problem.kind in ("ops", "engine", "bug"):
        files["driver.py"] = problem.read("driver.py")
    return files


def modules_of(problem: Problem) -> set[str]:
    """The modules of the step's tree, as a submission may import them."""
    if not problem.step:
        return set()
    paths = tree_of(root_of(problem), problem.step.number)
    names = {path.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for path in paths}
    return names


def stubbed(text: str, place: Place, label: str) -> str:
    """A step's file with the place's symbols to be written; the stubs say `label`."""
    return stub_source(_without(text, place), text, label, place.path)


def _without(text: str, place: Place) -> str:
    """The file with the symbols taken out, for the stubs to find that they are missing."""
    lines = lines_of(text)
    for symbol in place.symbols:
        found = symbol_source(text, symbol, place.path)
        first = lines[found.first - 1]
        blank = [first[: len(first) - len(first.lstrip())] + "pass"]
        lines[found.first - 1 : found.last] = blank + [""] * (found.last - found.first)
    return "\n".join(lines) + "\n"


def replaced(problem: Problem, text: str) -> str:
    """The step's file with the functions of a replacement in place of its own."""
    place, base = place_of(problem), reference(problem)
    try:
        tree = parse_source(text, f"{problem.id}: a replacement")
    except StepError as error:
        raise fault(problem.folder, str(error), str(error)) from None
    extra: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in patches.functions(base):
            for inner in node.body:
                if not isinstance(inner, Function):
                    raise _only_functions(problem, node.name)
                base = _put(
                    problem, place, base, f"{node.name}.{inner.name}", patches.cut(text, inner)
                )
        elif isinstance(node, Function) and node.name in patches.functions(base):
            base = _put(problem, place, base, node.name, patches.cut(text, node))
        else:
            extra.append(patches.cut(text, node))
    return patches.with_extra(base, extra) if extra else base


def _only_functions(problem: Problem, name: str) -> Exception:
    text = f"a replacement of class {name} may hold methods only"
    return fault(problem.folder, f"对类 {name} 的替换只能含有方法", text)


def _put(problem: Problem, place: Place, base: str, name: str, text: str) -> str:
    """Replace function `name` in `base`, or add it to its class when it is new."""
    if name not in patches.functions(base):
        return patches.added(base, name, text)
    if not any(name == symbol or name.startswith(symbol + ".") for symbol in place.symbols):
        words = f"a replacement changes {name}, which is not among the symbols"
        raise fault(problem.folder, f"替换改动了 {name}，它不在 symbols 里", words)
    return patches.exchanged(base, name, text)
