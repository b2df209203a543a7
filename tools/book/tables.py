"""Directives that become tables: records of benchmarks, and the whole road."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

from tools.book.bench import caption, column_entry, need_column, record, rows, shown
from tools.book.context import Context, arguments
from tools.book.errors import BookError
from tools.book.settings import Stretch
from tools.book.sources import Sources
from tools.steplib import Step
from tools.steplib.source import parse


def _row(*cells: str) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(head: list[str], body: list[list[str]], numbers: set[int] | None = None) -> str:
    """A Markdown table; `numbers` are the columns that are aligned to the right."""
    rule = ["---:" if i in (numbers or set()) else "---" for i in range(len(head))]
    return "\n".join([_row(*head), "| " + " | ".join(rule) + " |", *(_row(*one) for one in body)])


def _boxed(kind: str, markdown: str) -> str:
    """A table in a box of its kind, for the style sheet."""
    return f'<div class="{kind}" markdown="1">\n\n{markdown}\n\n</div>'


def bench_table(context: Context, text: str) -> str:
    """`@@table KEY [columns=a,b] [where=col=value]@@`, with machine, versions and date."""
    words, options = arguments(text, {"columns", "where"}, 1)
    document = record(context.sources, words[0])
    columns = [one.strip() for one in options["columns"].split(",")] if "columns" in options else []
    columns = columns or list(document["rows"][0])
    for column in columns:
        need_column(document, column)
    found = rows(document, options.get("where", ""))
    entries = [column_entry(context.sources, words[0], column) for column in columns]
    head = [
        entry[0][context.language] if entry else column
        for entry, column in zip(entries, columns, strict=True)
    ]
    forms = [entry[1] if entry else "" for entry in entries]
    body = [
        [
            shown(one[column], form if isinstance(one[column], (int, float)) else "")
            for column, form in zip(columns, forms, strict=True)
        ]
        for one in found
    ]
    numbers = {i for i, column in enumerate(columns) if not isinstance(found[0][column], str)}
    made = f"{caption(context.language, document)}\n{{ .caption }}"
    return _boxed("bench", f"{_table(head, body, numbers)}\n\n{made}")


def roadmap(context: Context, text: str) -> str:
    """`@@roadmap@@`: every chapter with its limit, ability and proof; those to come are marked."""
    arguments(text, set(), 0)
    language, settings = context.language, context.sources.settings
    written = {step.number: step for step in context.sources.book}
    road = {one.chapter: one for one in settings.road}
    for number in written:
        if number not in road:
            raise BookError(
                f"docs/book.toml 没有第 {number} 章的 [[road]]",
                f"docs/book.toml has no [[road]] of chapter {number}",
            )
    head = [
        context.say("章", "Chapter"),
        context.say("上一步的局限", "What limits the step before"),
        context.say("新能力", "New ability"),
        context.say("主要证据", "Main proof"),
    ]
    body: list[list[str]] = []
    part: int | None = None
    for number in sorted(road):
        stretch, step = road[number], written.get(number)
        here = step.part if step else stretch.part
        if here != part and here in settings.parts:
            body.append([f"**{settings.parts[here][language]}**", "", "", ""])
        part = here
        texts = (stretch.limit, stretch.ability, stretch.proof)
        body.append([_stop(context, stretch, step), *(one[language] for one in texts)])
    return _boxed("road", _table(head, body))


def _stop(context: Context, stretch: Stretch, step: Step | None) -> str:
    number = f"{stretch.chapter:02}"
    if step:
        return f"[{number} {step.title[context.language]}]({step.page}.md)"
    if stretch.title is None or stretch.part is None:
        raise BookError(
            f"docs/book.toml 的 [[road]] 第 {number} 章缺少 title 或 part",
            f"chapter {number} in docs/book.toml [[road]] lacks title or part",
        )
    return f"{number} {stretch.title[context.language]}{context.say('（待写）', ' (to come)')}"


def status(context: Context, text: str) -> str:
    """`@@status@@`: what the checks prove of each chapter, counted from what they read."""
    arguments(text, set(), 0)
    sources, say = context.sources, context.say
    head = [
        say("章", "Chapter"),
        say("测试", "Tests"),
        say("测量", "Measured"),
        say("题目", "Problems"),
    ]
    body = []
    for step in sources.book:
        benches = sorted(sources.root.glob(f"bench/{step.label}_*.json"))
        count = sum(one.chapter == step.number for one in sources.problems.problems)
        body.append(
            [
                f"[{step.number:02} {step.title[context.language]}]({step.page}.md)",
                str(sum(_count_tests(sources.read(path), path) for path in step.tests)),
                ", ".join(_record_link(sources, one) for one in benches) or "–",
                str(count) if count else "–",
            ]
        )
    return _boxed("status", _table(head, body, {1, 3}))


def _record_link(sources: Sources, path: Path) -> str:
    """A record with its fingerprint, by which also a figure that no page quotes moves the book."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return f'[{path.stem}]({sources.blob(f"bench/{path.name}")} "sha256 {digest}")'


def _count_tests(source: str, path: str) -> int:
    """A parametrised test counts once."""
    return sum(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for node in ast.walk(parse(source, path))
    )
