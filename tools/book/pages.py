"""Pages as they are written: which there are, and what stands on their lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tools.book.texts import read_text
from tools.book.words import LANGUAGES

DIRECTIVE = re.compile(r"@@(?!@)\s*(.*?)\s*@@\s*")
FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*(.*?)\s*$")
HEADING = re.compile(r"(#{1,6})\s+(.*?)(?:\s+\{([^}]*)\})?\s*$")
CODE = re.compile(r"(?<!`)(?P<marks>`+)(?!`).+?(?<!`)(?P=marks)(?!`)")
FOLD = re.compile(r"\s*\?\?\?\+?\s")


@dataclass(frozen=True)
class Page:
    """One file of docs/LANGUAGE/."""

    language: str
    name: str
    text: str

    @property
    def path(self) -> str:
        """The file, from the root."""
        return f"docs/{self.language}/{self.name}.md"


class Line(NamedTuple):
    """A line that is not inside a fence: "directive", "heading", "fold" or "text"."""

    number: int
    kind: str
    text: str


class Fence(NamedTuple):
    """A fenced block: its info line, its content, and whether a fence ends it."""

    number: int
    info: str
    body: tuple[str, ...]
    closed: bool
    raw: tuple[str, ...]


class Heading(NamedTuple):
    """A heading: level, text, and the id that is written after it, if one is."""

    number: int
    level: int
    text: str
    id: str


def load_pages(root: Path) -> list[Page]:
    """Return every page, Chinese first."""
    return [
        Page(language, name, read_text(root, f"docs/{language}/{name}.md"))
        for language in LANGUAGES
        for name in _names(root / "docs" / language)
    ]


def _names(folder: Path) -> list[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    return sorted(path.removesuffix(".md") for path in found)


def scan(text: str) -> Iterator[Line | Fence]:
    """Yield the lines of a page in order, each fenced block as one."""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        opened = FENCE.match(line)
        if opened and not (opened[2][0] == "`" and "`" in opened[3]):
            end = _closing(lines, number, opened[2])
            raw = lines[number : end + 1]
            indent = len(opened[1])
            body = tuple(one[indent:] if not one[:indent].strip() else one for one in raw[1:-1])
            yield Fence(number + 1, opened[3], body, end < len(lines), tuple(raw))
            number = end + 1
            continue
        yield Line(number + 1, _kind(line), line)
        number += 1


def _closing(lines: list[str], number: int, marks: str) -> int:
    for end in range(number + 1, len(lines)):
        closing = lines[end].strip()
        if len(closing) >= len(marks) and set(closing) == {marks[0]}:
            return end
    return len(lines)


def _kind(line: str) -> str:
    if DIRECTIVE.fullmatch(line.strip()):
        return "directive"
    if HEADING.fullmatch(line):
        return "heading"
    return "fold" if FOLD.match(line) else "text"


def headings(text: str) -> list[Heading]:
    """Return the headings of a page."""
    found = []
    for one in scan(text):
        match = HEADING.fullmatch(one.text) if isinstance(one, Line) else None
        if match:
            written = re.search(r"#([\w-]+)", match[3] or "")
            found.append(
                Heading(one.number, len(match[1]), match[2], written[1] if written else "")
            )
    return found


def directives(text: str) -> list[tuple[int, str]]:
    """Return (line, directive without its signs) in order."""
    return [
        (one.number, inside(one.text))
        for one in scan(text)
        if isinstance(one, Line) and one.kind == "directive"
    ]


def outside_code(line: str, change: Callable[[str], str]) -> str:
    """Change what lies between the inline code of a line."""
    done, at = "", 0
    for code in CODE.finditer(line):
        done, at = done + change(line[at : code.start()]) + code[0], code.end()
    return done + change(line[at:])


def inside(line: str) -> str:
    """A directive's text without its signs."""
    match = DIRECTIVE.fullmatch(line.strip())
    assert match
    return match[1]
