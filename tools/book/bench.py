"""What benchmarks have recorded in bench/*.json: rows, titles of columns, captions."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any, cast

from tools.book.errors import BookError
from tools.book.sources import Sources
from tools.book.words import Text, say

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
    try:
        document = json.loads(path.read_text("utf-8"))
    except ValueError:
        document = None
    if not _whole(document):
        raise BookError(
            f"bench/{key}.json 已损坏：python3 bench/check.py 会指出哪里",
            f"bench/{key}.json is damaged: python3 bench/check.py says where",
        )
    script = sources.root / document["script"]["path"]
    if not script.is_file() or script_hash(script) != document["script"]["sha256"]:
        raise BookError(
            f"bench/{key}.json 已过时：运行 python3 bench/{script.name} --record",
            f"bench/{key}.json is stale: run python3 bench/{script.name} --record",
        )
    return cast(dict[str, Any], document)


def _whole(document: Any) -> bool:
    """Whether a record has what pages take from it."""
    match document:
        case {
            "key": str(),
            "date": str(),
            "script": {"path": str(), "sha256": str()},
            "machine": {"cpu": _, "cores": _, "memory_gib": _, "os": _},
            "versions": dict(),
            "rows": [dict(first), *_] as rows,
        }:
            return all(
                isinstance(row, dict)
                and row.keys() == first.keys()
                and all(map(_flat, row.values()))
                for row in rows
            )
    return False


def _flat(figure: Any) -> bool:
    if isinstance(figure, float):
        return math.isfinite(figure)
    return figure is None or isinstance(figure, str | int)


def script_hash(script: Path) -> str:
    """The hash that records hold of the script that made them, by the function that wrote it."""
    folder = str(Path(__file__).resolve().parents[2] / "bench")
    if folder not in sys.path:
        sys.path.append(folder)
    import _bench  # its folder is no package

    try:
        return _bench.script_hash(script)
    except SyntaxError as error:
        raise BookError(*[f"{script.name}:{error.lineno}: {error.msg}"] * 2) from None


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
    again = f"python3 {document['script']['path']}"
    return say(
        language,
        f"{document['date']} 测于 {place}；{libraries}。重测：`{again}`",
        f"Measured {document['date']} on {place}; {libraries}. Again: `{again}`",
    )


def column_entry(sources: Sources, key: str, column: str) -> tuple[Text, str] | None:
    """Title and format that docs/book.toml gives a column, the record's own entry first."""
    columns = sources.settings.columns
    entry = columns.get(f"{key}.{column}") or columns.get(column)
    return (entry.title, entry.format) if entry else None
