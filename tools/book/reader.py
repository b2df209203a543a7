"""What a reader has typed so far, and where the next piece of code goes.

The generator keeps the reader's files beside the page: they begin as the step before, and each code
block of the page changes them. So a title can name a place that exists when the reader gets there
(`after LLM.close`), whatever the order in which the page tells its story, and what the page has
left out is what still differs at its end. `replay` plays the same from the finished page alone.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools.book.errors import BookError
from tools.book.outline import HEAD, Part, find, locate, parts
from tools.steplib.difference import changed_lines
from tools.steplib.source import lines_of, parse, targets


@dataclass(frozen=True)
class Place:
    """What a reader does with a block of code.

    `act` is "file" (a new file, or one typed anew), "start" (a new file, of which this is the first
    piece), "replace", "after", "before", "below", "above" (next to `other`; the latter two on the
    very next line), "same" (nothing: it stands there already) or "again" (it was shown before).
    """

    act: str
    other: str = ""


class Reader:
    """The package as the page has built it up to here."""

    def __init__(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """`before` and `after`: path -> text of the step before and of the page's step."""
        self.before = dict(before)
        self.after = dict(after)
        self.files = dict(before)

    def show(self, path: str, symbol: str) -> Place:
        """Take over a file (`symbol` empty) or a symbol; return what the reader does."""
        if path not in self.after:
            raise BookError(*self._absent(path))
        new = self.after[path]
        if not symbol:
            if self.files.get(path) == new:
                return Place("same" if self.before.get(path) == new else "again")
            self.files[path] = new
            return Place("file")
        part = locate(new, symbol, path)
        block = part.text(new)
        if path not in self.files:
            self.files[path] = block + "\n"
            return Place("start")
        place = self._place(path, part, block)
        if place.act == "replace":
            mine = locate(self.files[path], symbol, path)
            self._splice(path, mine.first, mine.last, lines_of(block))
        elif place.act not in ("same", "again"):
            self._insert(path, place, part, lines_of(block))
        return place

    def _absent(self, path: str) -> tuple[str, str]:
        if path in self.before:
            return (
                f"本章已删除 {path}：写 @@removed {path}@@",
                f"this chapter takes {path} away: write @@removed {path}@@",
            )
        return no_file(path, self.after)

    def _place(self, path: str, part: Part, block: str) -> Place:
        mine = find(self.files[path], part.name, path)
        if mine is not None:
            if mine.text(self.files[path]) != block:
                return Place("replace")
            old = find(self.before.get(path, ""), part.name, path)
            same = old is not None and old.text(self.before[path]) == block
            return Place("same" if same else "again")
        return self._beside_lines(path, part) if part.kind == "line" else self._beside(path, part)

    def _beside(self, path: str, part: Part) -> Place:
        """Next to the nearest part above that the reader has; else before the nearest below."""
        name, outer = _as_sibling(part)
        siblings = self._siblings(path, name, outer)
        at = siblings.index(name)
        for act, others in (("after", reversed(siblings[:at])), ("before", siblings[at + 1 :])):
            for other in others:
                if find(self.files[path], other, path):
                    return Place(act, other)
        raise BookError(
            f"{path}：读者还没有 {outer}，先写 @@code {path}:{outer}.@head@@",
            f"{path}: the reader has no {outer} yet: show @@code {path}:{outer}.@head@@ first",
        )

    def _siblings(self, path: str, name: str, outer: str) -> list[str]:
        """Names of the same floor in the new file, top to bottom."""
        floor = name.count(".")
        found: dict[str, None] = {}
        for one in parts(self.after[path], path):
            if one.name.startswith(f"{outer}." if outer else ""):
                found[".".join(one.name.split(".")[: floor + 1])] = None
        return list(found)

    def _beside_lines(self, path: str, part: Part) -> Place:
        """An assignment goes below or above an assignment that touches it."""
        new = self.after[path]
        for act, other in _neighbours(new, part, path):
            if find(self.files[path], other, path):
                return Place(act, other)
        head = f"{part.outer}.{HEAD}" if part.outer else HEAD
        raise BookError(
            f"{path}：{part.name} 上下都没有读者已有的赋值，改用 @@code {path}:{head}@@",
            f"{path}: no assignment that the reader has touches {part.name}: "
            f"show @@code {path}:{head}@@ instead",
        )

    def _insert(self, path: str, place: Place, part: Part, block: list[str]) -> None:
        """Blank lines as everywhere: two around what stands at the top, one around a member."""
        other = locate(self.files[path], place.other, path)
        gap = [""] * (1 if _as_sibling(part)[1] else 2)
        if place.act == "after":
            self._splice(path, other.last + 1, other.last, [*gap, *block])
        elif place.act == "before":
            self._splice(path, other.first, other.first - 1, [*block, *gap])
        elif place.act == "below":
            self._splice(path, other.last + 1, other.last, block)
        else:
            self._splice(path, other.first, other.first - 1, block)

    def _splice(self, path: str, first: int, last: int, lines: list[str]) -> None:
        have = lines_of(self.files[path])
        have[first - 1 : last] = lines
        self.files[path] = "\n".join(have) + "\n"

    def remove(self, path: str, symbol: str) -> None:
        """Take a file or a symbol away; BookError when this chapter does not."""
        where = f"{path}:{symbol}" if symbol else path
        if path not in self.before or (symbol and not find(self.before[path], symbol, path)):
            raise BookError(f"上一步没有 {where}", f"the step before has no {where}")
        if path in self.after and (not symbol or find(self.after[path], symbol, path)):
            raise BookError(f"本章没有删除 {where}", f"this chapter does not take {where} away")
        if path not in self.files:
            return
        if not symbol:
            del self.files[path]
            return
        part = find(self.files[path], symbol, path)
        if part:
            lines = lines_of(self.files[path])
            first = part.first
            while part.kind != "line" and first > 1 and not lines[first - 2].strip():
                first -= 1
            self._splice(path, first, part.last, [])

    def differing(self, path: str, symbol: str) -> set[int]:
        """Lines of the shown code, counted from 1, that the step before has otherwise.

        Empty for what is new as a whole.
        """
        old, new = self.before.get(path), self.after[path]
        if symbol and old is not None:
            part = find(old, symbol, path)
            old = part.text(old) if part else None
            new = locate(new, symbol, path).text(new)
        return changed_lines(old, new) if old is not None else set()

    def missing(self) -> list[tuple[str, str, int]]:
        """Return (path, symbol, changed lines) of what the reader still has otherwise.

        A symbol that begins with `-` is one that should have been taken away; "" is a whole file.
        """
        found: list[tuple[str, str, int]] = []
        for path in sorted({*self.files, *self.after}):
            if self.files.get(path) == self.after.get(path):
                continue
            if path not in self.after:
                found.append((path, "-", 1))
            elif path not in self.files:
                found.append((path, "", len(_solid(self.after[path]))))
            else:
                found += [(path, name, count) for name, count in self._missing_parts(path)]
        return found

    def _missing_parts(self, path: str) -> list[tuple[str, int]]:
        mine, new = self.files[path], self.after[path]
        found: list[tuple[str, int]] = []
        for part in parts(new, path):
            have = find(mine, part.name, path)
            if have is None:
                found.append((part.name, len(_solid(part.text(new)))))
            elif have.text(mine) != part.text(new):
                found.append((part.name, max(1, _count(have.text(mine), part.text(new)))))
        for part in parts(mine, path):
            if find(new, part.name, path) is None:
                found.append((f"-{part.name}", 1))
        return found or [("", max(1, _count(mine, new)))]


def no_file(path: str, files: Iterable[str]) -> tuple[str, str]:
    """What to say of a file that a chapter does not have: the name that is most like it."""
    near = difflib.get_close_matches(path, files, n=1, cutoff=0.0)
    return f"这一步没有 {path}，是不是 {near[0]}？", f"this step has no {path}, is it {near[0]}?"


def _as_sibling(part: Part) -> tuple[str, str]:
    """A part's name and the class around it; the head of a class that is new stands for it."""
    if part.outer and part.name.endswith(HEAD):
        return part.outer, part.outer.rpartition(".")[0]
    return part.name, part.outer


def _neighbours(source: str, part: Part, path: str) -> list[tuple[str, str]]:
    """("below" or "above", name) of the assignments whose lines touch those of `part`."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(parse(source, path)):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not targets(node):
            continue
        name = ".".join(filter(None, [part.outer, targets(node)[0]]))
        other = find(source, name, path)
        if other and other.kind == "line" and other.last == part.first - 1:
            found.append(("below", name))
        elif other and other.kind == "line" and other.first == part.last + 1:
            found.append(("above", name))
    return sorted(found, reverse=True)


def _solid(text: str) -> list[str]:
    return [line for line in lines_of(text) if line.strip()]


def _count(old: str, new: str) -> int:
    lines = lines_of(new)
    return sum(bool(lines[number - 1].strip()) for number in changed_lines(old, new))


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> int:
    """Return how many lines that are not blank a chapter writes or changes in the package."""
    return sum(
        _count(before[path], text) if path in before else len(_solid(text))
        for path, text in after.items()
        if before.get(path) != text
    )
