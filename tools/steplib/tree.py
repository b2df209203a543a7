"""Which version of which package file makes up a step: worked out from the manifests alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import StepError
from .manifest import Book, Step


@dataclass(frozen=True)
class Version:
    """One stored version of a package file: the step that wrote it and where it lies."""

    path: str
    step: Step
    location: Path

    def read(self) -> bytes:
        """Return the content; StepError that names the place when it is not there."""
        try:
            return self.location.read_bytes()
        except OSError:
            raise StepError(
                f"{self.step.label}: its version of {self.path} should lie at {self.location}; "
                "`python3 tools/steps.py check` says how to put it there"
            ) from None


def tree(book: Book, number: int) -> dict[str, Version]:
    """Return the package of step `number`: path -> the newest version written so far, sorted."""
    found: dict[str, Version] = {}
    for step in book.up_to(book[number].number):
        for path in step.removes:
            found.pop(path, None)
        for path in step.writes:
            found[path] = Version(path, step, _location(book, step, path))
    return dict(sorted(found.items()))


def versions(book: Book, path: str) -> list[Version]:
    """Return every version of `path`, oldest first."""
    return [
        Version(path, step, _location(book, step, path)) for step in book if path in step.writes
    ]


def _location(book: Book, step: Step, path: str) -> Path:
    """A version lies under `steps/` when a later chapter rewrites or removes it."""
    later = (other for other in book if other.number > step.number)
    superseded = any(path in other.writes or path in other.removes for other in later)
    return (step.folder if superseded else book.root) / path


def marks(book: Book, number: int) -> dict[str, str]:
    """Return path -> "new", "changed", "removed" or "" (kept) for step `number`, sorted."""
    step = book[number]
    previous = book.before(step)
    old = tree(book, previous.number) if previous else {}
    found = {path: "" for path in tree(book, number)}
    for path in step.writes:
        found[path] = "changed" if path in old else "new"
    found.update(dict.fromkeys(step.removes, "removed"))
    return dict(sorted(found.items()))


Nested = dict[str, Any]


def render_tree(found: dict[str, str], labels: dict[str, str]) -> str:
    """Draw path -> mark as a tree; `labels` words the marks ("new" -> "new in this chapter")."""
    lines: list[str] = []
    _draw(_nest(found), "", labels, lines)
    return "\n".join(lines)


def _nest(found: dict[str, str]) -> Nested:
    nested: Nested = {}
    for path, mark in found.items():
        *folders, name = path.split("/")
        place = nested
        for folder in folders:
            place = place.setdefault(folder + "/", {})
        place[name] = mark
    return nested


def _draw(place: Nested, indent: str, labels: dict[str, str], lines: list[str]) -> None:
    for index, (name, below) in enumerate(place.items()):
        last = index == len(place) - 1
        branch = "" if not lines else indent + ("└── " if last else "├── ")
        if isinstance(below, dict):
            lines.append(branch + name)
            deeper = "" if not branch else indent + ("    " if last else "│   ")
            _draw(below, deeper, labels, lines)
        else:
            lines.append(branch + name + (f"  ← {labels[below]}" if below else ""))
