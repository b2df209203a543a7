"""Recorded outputs: what a step's main prints, in both languages."""

import difflib
from collections.abc import Iterator
from pathlib import Path

from .build import build
from .errors import StepError
from .manifest import Book, Step
from .readme import readme
from .run import Finished, mask, python, run_main

LANGUAGES = ("zh", "en")


def expected_file(step: Step, language: str) -> Path:
    """Return where the recorded output of a step lies."""
    return step.folder / f"expected.{language}.txt"


def record(book: Book, number: int) -> Iterator[Path]:
    """Run the main of step `number` and record what it prints; yields the files that changed.

    Links of other steps may have moved, so every README is brought up to date.
    """
    step = book[number]
    tree = build(book, number)
    for language in LANGUAGES:
        ended = run_main(python(book.root), tree, step.main, language)
        if ended.status != 0:
            raise StepError(f"{step.main} failed, nothing recorded\n{failure(ended)}")
        path = expected_file(step, language)
        if not path.is_file() or path.read_text("utf-8") != ended.output:
            path.write_text(ended.output, "utf-8")
            yield path
    for other in book:
        path = other.folder / "README.md"
        if stale_readme(book, other):
            path.write_text(readme(book, other.number), "utf-8")
            yield path


def stale_readme(book: Book, step: Step) -> bool:
    """Say whether the README of a step is not what `readme` makes."""
    path = step.folder / "README.md"
    return not path.is_file() or path.read_text("utf-8") != readme(book, step.number)


def failure(ended: Finished) -> str:
    """Say how a process failed: its status and the end of what it said."""
    how = "stopped at the time limit" if ended.status is None else f"exit status {ended.status}"
    return "\n".join([how, *(ended.output + ended.errors).splitlines()[-20:]])


def difference(recorded: str, output: str) -> str:
    """Return the lines in which an output differs from the record, "" when none does."""
    old, new = mask(recorded).splitlines(), mask(output).splitlines()
    return "\n".join(list(difflib.unified_diff(old, new, "recorded", "printed", "", "", 1, "")))
