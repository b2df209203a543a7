"""Directives that show sources: the package, mains, tests, trees and outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tools.book.context import Context, arguments
from tools.book.errors import BookError
from tools.book.outline import locate
from tools.book.reader import Reader, no_file
from tools.book.values import output_lines
from tools.book.words import piece, removal, title
from tools.steplib import marks, render_tree, symbol_source
from tools.steplib.errors import StepError
from tools.steplib.source import lines_of
from tools.steplib.stubs import changed_functions

SUFFIXES = {".py": "python", ".jinja": "jinja", ".json": "json", ".toml": "toml", ".sh": "sh"}


def block(body: str, name: str, title: str = "", marked: Iterable[int] = ()) -> str:
    """A fenced block in the language that the file name tells; `marked` lines are highlighted."""
    longest = max((len(run) for run in re.findall(r"`{3,}", body)), default=2)
    fence = "`" * (longest + 1)
    kind = next((word for end, word in SUFFIXES.items() if name.endswith(end)), "text")
    options = f' title="{title}"' if title else ""
    ranges = _ranges(marked)
    if ranges:
        options += f' hl_lines="{ranges}"'
    return f"{fence}{kind}{options}\n{body}\n{fence}"


def _ranges(numbers: Iterable[int]) -> str:
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(f"{a}-{b}" if a != b else f"{a}" for a, b in found)


def code(context: Context, text: str) -> str:
    """`@@code PATH[:Symbol] [ch=N]@@`"""
    words, options = arguments(text, {"ch"}, 1)
    path, _, symbol = words[0].partition(":")
    if "ch" in options:
        return _other_chapter(context, path, symbol, options["ch"])
    context.need_step()
    return show(context, path, symbol)


def show(context: Context, path: str, symbol: str) -> str:
    """Code of the page's own chapter, which its reader types."""
    reader = context.reader
    place = reader.show(path, symbol)
    source = reader.after[path]
    body = locate(source, symbol, path).text(source) if symbol else source.removesuffix("\n")
    marked = reader.differing(path, symbol) if place.act in ("replace", "file") else set()
    if len(marked) == len(lines_of(body)):
        marked = set()
    heading = title(context.language, path, symbol, place)
    shown = block(body, path, heading, marked)
    if context.folded or not _is_to_write(reader, path, symbol):
        return shown
    if place.act == "replace" and (old := context.sources.book.before(context.need_step())):
        before = f"`python3 tools/steps.py show {old.number} {path}:{symbol}`"
        shown += f"\n\n{context.say('改之前', 'Before')}: {before}\n{{ .caption }}"
    fold = '<details class="write" markdown="1">'
    return f"{fold}\n<summary><code>{heading}</code></summary>\n\n{shown}\n\n</details>"


def _is_to_write(reader: Reader, path: str, symbol: str) -> bool:
    """Whether the reader's workspace has stubs or marks in this code."""
    if not path.endswith(".py"):
        return False
    todo = changed_functions(reader.before.get(path), reader.after[path], path)
    return any(not symbol or f"{name}.".startswith(f"{symbol}.") for name, _ in todo)


def _other_chapter(context: Context, path: str, symbol: str, number: str) -> str:
    if not number.isdigit():
        raise BookError(f"ch={number} 不是章号", f"ch={number} is not the number of a chapter")
    step = context.sources.step(f"ch{int(number):02}")
    files = context.sources.package(step.number)
    if path not in files:
        raise BookError(*no_file(path, files))
    source = files[path]
    body = locate(source, symbol, path).text(source) if symbol else source.removesuffix("\n")
    what = f" · {piece(context.language, symbol)}" if symbol else ""
    return block(body, path, f"{path}{what} · {step.label}")


def removed(context: Context, text: str) -> str:
    """`@@removed PATH[:Symbol]@@`"""
    words, _ = arguments(text, set(), 1)
    path, _, symbol = words[0].partition(":")
    context.need_step()
    context.reader.remove(path, symbol)
    return f'!!! delete "{removal(context.language, path, symbol)}"\n'


def main(context: Context, text: str) -> str:
    """`@@main@@`, `@@main SYMBOL@@`: the example of the page's chapter."""
    words, _ = arguments(text, set(), 0, 1)
    path, symbol = context.need_step().main, words[0] if words else ""
    if path in context.reader.after:
        return show(context, path, symbol)
    source = context.sources.main(context.need_step(), context.language)
    body = locate(source, symbol, path).text(source) if symbol else source.removesuffix("\n")
    heading = f"{path} · {piece(context.language, symbol)}" if symbol else path
    return block(body, path, heading)


def test(context: Context, text: str) -> str:
    """`@@test PATH::name@@`"""
    words, _ = arguments(text, set(), 1)
    path, _, name = words[0].partition("::")
    if not path.startswith("tests/") or not name:
        raise BookError("写 @@test tests/FILE.py::name@@", "write @@test tests/FILE.py::name@@")
    try:
        found = symbol_source(context.sources.read(path), name.replace("::", "."), path)
    except StepError as error:
        raise BookError(str(error), str(error)) from None
    return block(found.text, path, f"{path}::{name}")


def tree(context: Context, text: str) -> str:
    """`@@tree@@`: the package after the page's chapter, each file with what became of it."""
    arguments(text, set(), 0)
    step = context.need_step()
    labels = {
        "new": context.say("新增", "new"),
        "changed": context.say("修改", "changed"),
        "removed": context.say("删除", "removed"),
    }
    found = marks(context.sources.book, step.number) or {step.main: "new"}
    drawn = render_tree(found, labels)
    touched = [
        number
        for number, line in enumerate(drawn.split("\n"), 1)
        if any(line.endswith(f"← {label}") for label in labels.values())
    ]
    marked = touched if len(touched) < len(found) else []
    return block(drawn, "tree.txt", "", marked)


def output(context: Context, text: str) -> str:
    """`@@output@@`, `@@output A-B@@`: what the main of the page's chapter printed."""
    words, _ = arguments(text, set(), 0, 1)
    step = context.need_step()
    lines = output_lines(context.sources, context.language, step.label)
    first, last = 1, len(lines)
    if words:
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", words[0])
        if not span:
            raise BookError("写 @@output A-B@@", "write @@output A-B@@")
        first, last = int(span[1]), int(span[2] or span[1])
        if not 1 <= first <= last <= len(lines):
            raise BookError(
                f"{step.label} 的输出只有 {len(lines)} 行",
                f"the output of {step.label} has {len(lines)} lines",
            )
    return block("\n".join(lines[first - 1 : last]), "output.txt", f"python {step.main}")
