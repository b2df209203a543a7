"""What changed between two versions of a file, by line and by line of code."""

import ast
import difflib
from functools import lru_cache

from .manifest import Book
from .source import docstring_of, lines_of, parse
from .tree import Version, tree

BUDGET_LINES = 350


def changed_lines(old: str, new: str) -> set[int]:
    """Return the numbers (from 1) of the lines of `new` that are not in `old` at their place."""
    return _changed(lines_of(old), lines_of(new))


def _changed(old: list[str], new: list[str]) -> set[int]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return {
        line + 1
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag in ("replace", "insert")
        for line in range(start, end)
    }


@lru_cache(maxsize=4096)
def code_lines(text: str, path: str) -> tuple[str, ...]:
    """Return the lines of code: no blank lines, comments or docstrings."""
    lines = lines_of(text)
    if not path.endswith(".py"):
        return tuple(line for line in lines if line.strip() and not line.lstrip().startswith("//"))
    prose: set[int] = set()
    inside: set[int] = set()
    for node in ast.walk(parse(text, path)):
        found = docstring_of(node)
        if found:
            prose.update(range(found.lineno, (found.end_lineno or 0) + 1))
        elif isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno:
            inside.update(range(node.lineno, (node.end_lineno or 0) + 1))
    return tuple(
        line
        for number, line in enumerate(lines, 1)
        if number not in prose
        and (number in inside or (line.strip() and not line.lstrip().startswith("#")))
    )


def budget(book: Book, number: int) -> int:
    """Return how many lines of package code step `number` adds or changes."""
    step = book[number]
    previous = book.before(step)
    old = tree(book, previous.number) if previous else {}
    new = tree(book, number)
    return sum(_count(old.get(path), new[path]) for path in step.writes)


def _count(old: Version | None, new: Version) -> int:
    before = code_lines(_text(old), old.path) if old else ()
    return len(_changed(list(before), list(code_lines(_text(new), new.path))))


def _text(version: Version) -> str:
    return version.read().decode("utf-8", "replace")


def unified(book: Book, number: int, path: str | None = None) -> str:
    """Return the change of step `number` as a unified diff, of one file or of all."""
    previous = book.before(book[number])
    old = tree(book, previous.number) if previous else {}
    new = tree(book, number)
    parts: list[str] = []
    for name in sorted({*old, *new}):
        if path in (None, name) and old.get(name) != new.get(name):
            before, after = old.get(name), new.get(name)
            parts += difflib.unified_diff(
                lines_of(_text(before)) if before else [],
                lines_of(_text(after)) if after else [],
                f"{previous.label}/{name}" if before and previous else "/dev/null",
                f"{book[number].label}/{name}" if after else "/dev/null",
                lineterm="",
            )
    return "\n".join(parts)
