"""Check the records of this folder: their form, and that the script that made each is still there.

    python3 bench/check.py

A record whose script has changed says nothing about the script that is there: run it again.
"""

import json
import math
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH), str(BENCH.parent)]

from _bench import RECORD, script_hash  # noqa: E402  (the folders must be importable first)
from tools.lang import tr  # noqa: E402

KEYS = ["key", "what", "machine", "versions", "date", "script", "rows"]
NO_BENCHMARKS = {"_bench.py", "check.py"}


def faults(folder: Path) -> Iterator[str]:
    """Yield one line for every fault of the records and scripts in `folder`."""
    scripts = {path.name for path in folder.glob("*.py")} - NO_BENCHMARKS
    recorded: set[str] = set()
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            yield f"{path.name}: {tr('不是 JSON', 'not JSON')}: {error}"
            continue
        wrong = list(_wrong_form(document, path.stem))
        yield from (f"{path.name}: {one}" for one in wrong)
        if not wrong:
            name = document["script"]["path"].removeprefix("bench/")
            recorded.add(name)
            yield from (f"{path.name}: {one}" for one in _wrong_script(document, folder / name))
    for name in sorted(scripts - recorded):
        yield tr(
            f"{name}：没有记录，请运行 python3 bench/{name} {RECORD}",
            f"{name}: no record: run python3 bench/{name} {RECORD}",
        )


def _wrong_script(document: dict[str, Any], script: Path) -> Iterator[str]:
    if not script.is_file():
        yield tr(f"脚本 {script.name} 不存在", f"its script {script.name} does not exist")
    elif document["script"]["sha256"] != script_hash(script):
        yield tr(
            f"bench/{script.name} 在记录之后改过，请加 {RECORD} 重新运行",
            f"bench/{script.name} has changed since: run it again with {RECORD}",
        )


def _wrong_form(document: Any, stem: str) -> Iterator[str]:
    if not isinstance(document, dict) or list(document) != KEYS:
        yield tr(f"字段应依次为 {', '.join(KEYS)}", f"its keys must be {', '.join(KEYS)}")
        return
    if document["key"] != stem:
        yield tr("`key` 与文件名不同", "`key` differs from the name of the file")
    if not isinstance(document["what"], str) or not document["what"].strip():
        yield tr("`what` 不是文字", "`what` must be a text")
    for name, needed in {
        "machine": {"cpu", "cores", "memory_gib", "os"},
        "versions": {"python", "torch"},
        "script": {"path", "sha256"},
    }.items():
        if not isinstance(document[name], dict) or not needed <= set(document[name]):
            yield tr(f"`{name}` 缺少字段", f"`{name}` must have {', '.join(sorted(needed))}")
            return
    if not _is_date(document["date"]):
        yield tr("`date` 不是 YYYY-MM-DD", "`date` must be YYYY-MM-DD")
    yield from _wrong_rows(document["rows"])
    if any(Path(part).is_absolute() for text in _texts(document) for part in text.split()):
        yield tr("里面有本机的路径", "it names a path on this machine")


def _wrong_rows(rows: Any) -> Iterator[str]:
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        yield tr("`rows` 不是非空的对象列表", "`rows` must be a list of objects, and not empty")
        return
    if any(list(row) != list(rows[0]) for row in rows):
        yield tr("`rows` 的列不一致", "`rows` must all have the same columns")
    for number, row in enumerate(rows):
        for name, figure in row.items():
            flat = figure is None or isinstance(figure, str | int | float)
            if not flat or (isinstance(figure, float) and not math.isfinite(figure)):
                yield tr(
                    f"第 {number} 行的 `{name}` 不是数、文字或空值",
                    f"`{name}` of row {number} must be a number, a text or null",
                )


def _is_date(text: Any) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except (TypeError, ValueError):
        return False


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def main() -> int:
    """Print what is wrong with the records here; 1 if anything is."""
    found = list(faults(BENCH))
    for line in found:
        print(f"✗ {line}")
    if not found:
        count = len(list(BENCH.glob("*.json")))
        print(tr(f"✓ {count} 份记录都由现有的脚本测得", f"✓ {count} records match their scripts"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
