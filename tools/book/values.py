"""Figures from records: `{{ ch05_kv_cache[length=1024].ratio | .1f }}`, tables, recorded output."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from tools.book.errors import BookError
from tools.book.sources import Sources
from tools.book.words import Text, say

EXPRESSION = re.compile(r"\{\{\s*(.*?)\s*\}\}")
CELL = re.compile(r"(\w+)\[([^\]]*)\]\.(\w+)(?:\s*\|\s*(.*))?")
OUTPUT = re.compile(r"output\[(ch\d\d)\]\s+(\d+):\s*(.*)")
Figure = Any


def record(sources: Sources, key: str) -> dict[str, Any]:
    """Return bench/KEY.json; BookError when there is none, or when its script has changed since."""
    path = sources.root / "bench" / f"{key}.json"
    if not re.fullmatch(r"\w+", key) or not path.is_file():
        there = ", ".join(sorted(one.stem for one in path.parent.glob("*.json")))
        raise BookError(
            f"没有记录 bench/{key}.json；有：{there}",
            f"there is no record bench/{key}.json; there are {there}",
        )
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    script = sources.root / document["script"]["path"]
    if not script.is_file() or script_hash(script) != document["script"]["sha256"]:
        raise BookError(
            f"bench/{key}.json 已过时：运行 {document['command']}",
            f"bench/{key}.json is stale: run {document['command']}",
        )
    return document


def script_hash(script: Path) -> str:
    """The hash that records hold of the script that made them, by the function that wrote it."""
    folder = str(Path(__file__).resolve().parents[2] / "bench")
    if folder not in sys.path:
        sys.path.append(folder)
    import _bench  # its folder is no package

    return _bench.script_hash(script)


def rows(document: dict[str, Any], where: str) -> list[dict[str, Figure]]:
    """Return the rows that `col=value,col=value` or an index picks; all without any."""
    every: list[dict[str, Figure]] = document["rows"]
    if not where:
        return every
    if re.fullmatch(r"-?\d+", where):
        index = int(where)
        if not -len(every) <= index < len(every):
            raise BookError(
                f"{document['key']} 只有 {len(every)} 行",
                f"{document['key']} has {len(every)} rows only",
            )
        return [every[index]]
    found = every
    for pair in where.split(","):
        column, _, wanted = (one.strip() for one in pair.partition("="))
        need_column(document, column)
        found = [row for row in found if _equals(row[column], wanted)]
    if not found:
        raise BookError(
            f"{document['key']} 里没有 {where} 的行", f"{document['key']} has no row with {where}"
        )
    return found


def need_column(document: dict[str, Any], column: str) -> None:
    """BookError, with the columns there are, when a record has none of that name."""
    columns = list(document["rows"][0])
    if column not in columns:
        raise BookError(
            f"{document['key']} 没有列 {column!r}；有：{', '.join(columns)}",
            f"{document['key']} has no column {column!r}; it has {', '.join(columns)}",
        )


def _equals(figure: Figure, wanted: str) -> bool:
    if isinstance(figure, (int, float)) and not isinstance(figure, bool):
        try:
            return float(wanted) == figure
        except ValueError:
            return False
    return str(figure) == wanted


def shown(figure: Figure, form: str = "") -> str:
    """A figure as the book prints it: by a Python format, else as it was recorded."""
    if figure is None:
        return "–"
    if form:
        try:
            return format(figure, form)
        except (ValueError, TypeError):
            raise BookError(
                f"格式 {form!r} 不能用于 {figure!r}", f"format {form!r} does not fit {figure!r}"
            ) from None
    if isinstance(figure, float) and figure.is_integer():
        return str(int(figure))
    return str(figure)


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
    from tools.book.records import check_record

    step = sources.step(label)
    check_record(sources, step)
    path = step.folder / f"expected.{language}.txt"
    return path.read_text("utf-8").rstrip("\n").split("\n")


def caption(language: str, document: dict[str, Any]) -> str:
    """Machine, versions and date of a record, and the command that makes it again."""
    machine, versions = document["machine"], document["versions"]
    place = say(
        language,
        f"{machine['cpu']}，{machine['cores']} 核，{machine['memory_gib']} GiB，{machine['os']}",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['os']}",
    )
    libraries = ", ".join(
        f"{name} {versions[name]}"
        for name in ("python", "torch", "transformers")
        if name in versions
    )
    return say(
        language,
        f"{document['date']} 测于 {place}；{libraries}。重测：`{document['command']}`",
        f"Measured {document['date']} on {place}; {libraries}. Again: `{document['command']}`",
    )


def column_title(sources: Sources, language: str, key: str, column: str) -> str:
    """The title of a column, from docs/book.toml where it has one."""
    entry = column_entry(sources, key, column)
    return entry[0][language] if entry else column


def column_entry(sources: Sources, key: str, column: str) -> tuple[Text, str] | None:
    """Title and format that docs/book.toml gives a column, the record's own entry first."""
    columns = sources.settings.columns
    entry = columns.get(f"{key}.{column}") or columns.get(column)
    return (entry.title, entry.format) if entry else None
