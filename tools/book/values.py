"""Figures in a sentence: `{{ ch05_kv_cache[length=1024].ratio | .1f }}`, and recorded output."""

from __future__ import annotations

import re

from tools.book.bench import need_column, record, rows, shown
from tools.book.errors import BookError
from tools.book.records import check_record
from tools.book.sources import Sources
from tools.steplib.record import expected_file

EXPRESSION = re.compile(r"\{\{\s*(.*?)\s*\}\}")
CELL = re.compile(r"(\w+)\[([^\]]*)\]\.(\w+)(?:\s*\|\s*(.*))?")
OUTPUT = re.compile(r"output\[(ch\d\d)\]\s+(\d+):\s*(.*)")


def evaluate(sources: Sources, language: str, expression: str) -> str:
    """Return what stands for `{{ expression }}` on a page of `language`."""
    output = OUTPUT.fullmatch(expression)
    if output:
        return _from_output(sources, language, *output.groups())
    cell = CELL.fullmatch(expression)
    if not cell:
        raise BookError(
            f"看不懂 {{{{ {expression} }}}}：写 KEY[col=value].column | .1f 或 "
            "output[ch05] 12: REGEX",
            f"cannot read {{{{ {expression} }}}}: write KEY[col=value].column | .1f or "
            "output[ch05] 12: REGEX",
        )
    key, where, column, form = cell.groups()
    document = record(sources, key)
    found = rows(document, where)
    need_column(document, column)
    if len(found) != 1:
        raise BookError(
            f"{key}[{where}] 有 {len(found)} 行，要恰好一行",
            f"{key}[{where}] matches {len(found)} rows, must be one",
        )
    return shown(found[0][column], (form or "").strip())


def _from_output(sources: Sources, language: str, label: str, number: str, pattern: str) -> str:
    lines = output_lines(sources, language, label)
    if not 1 <= int(number) <= len(lines):
        raise BookError(
            f"{label} 的输出只有 {len(lines)} 行", f"the output of {label} has {len(lines)} lines"
        )
    line = lines[int(number) - 1]
    try:
        match = re.search(pattern, line)
    except re.error as error:
        raise BookError(f"正则 {pattern!r}：{error}", f"pattern {pattern!r}: {error}") from None
    if not match or not match.groups():
        raise BookError(
            f"{label} 输出第 {number} 行 {line!r} 里找不到 {pattern!r} 的第一组",
            f"line {number} of {label}'s output, {line!r}, has no first group of {pattern!r}",
        )
    return match[1].strip()


def output_lines(sources: Sources, language: str, label: str) -> list[str]:
    """Return the recorded output of a chapter's main in a language; BookError when it is stale."""
    step = sources.step(label)
    check_record(sources, step)
    output = sources.read(expected_file(step, language).relative_to(sources.root).as_posix())
    return output.rstrip("\n").split("\n")
