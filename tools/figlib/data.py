"""What figures are drawn from besides traces: benchmarks, recorded output, the code of a step."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from tools.lang import tr
from tools.steplib import Book, StepError, load_steps, tree

from .errors import FigureError

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"


def bench_rows(key: str) -> list[dict[str, Any]]:
    """The rows of `bench/KEY.json`."""
    path = BENCH / f"{key}.json"
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["rows"]
        return rows
    except (OSError, ValueError, KeyError, TypeError):
        raise FigureError(
            tr(
                f"bench/{key}.json 缺失或损坏：请重新运行对应的 bench 脚本",
                f"bench/{key}.json is missing or damaged: run its benchmark again",
            )
        ) from None


def column(key: str, name: str) -> list[Any]:
    """One column of `bench/KEY.json`."""
    rows = bench_rows(key)
    if any(name not in row for row in rows):
        raise FigureError(
            tr(
                f"bench/{key}.json 没有 {name} 这一列：请修改使用它的图",
                f"bench/{key}.json has no column {name}: change the figure that uses it",
            )
        )
    return [row[name] for row in rows]


@cache
def book() -> Book:
    """The chapters, as their manifests describe them."""
    try:
        return load_steps(ROOT)
    except StepError as error:
        raise FigureError(str(error)) from None


def output_lines(number: int) -> list[str]:
    """The recorded output (English) of a chapter's main."""
    path = book()[number].folder / "expected.en.txt"
    try:
        return path.read_text("utf-8").splitlines()
    except OSError:
        raise FigureError(
            tr(
                f"{path.name} 缺失：请运行 python3 tools/steps.py record {number}",
                f"{path.name} is missing: run python3 tools/steps.py record {number}",
            )
        ) from None


def output_table(number: int, pattern: str) -> list[tuple[str, ...]]:
    """The groups of each line of a chapter's recorded output that matches `pattern` as a whole."""
    found = [re.fullmatch(pattern, line) for line in output_lines(number)]
    rows = [match.groups() for match in found if match]
    if not rows:
        raise FigureError(
            tr(
                f"第 {number} 章的输出里没有 {pattern!r}：请修改使用它的图",
                f"no line of chapter {number}'s output is {pattern!r}: change the figure",
            )
        )
    return rows


def class_fields(number: int, path: str, name: str) -> list[str]:
    """The annotated fields of a class, in order, as the file stands at step `number`."""
    versions = tree(book(), number)
    if path in versions:
        for node in ast.parse(versions[path].read()).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                targets = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
                return [target.id for target in targets if isinstance(target, ast.Name)]
    raise FigureError(
        tr(
            f"第 {number} 步的 {path} 里没有 {name}：请修改使用它的图",
            f"step {number} has no {name} in {path}: change the figure that uses it",
        )
    )


def function_names(path: str) -> list[str]:
    """The functions at the top level of a file of the repository."""
    body = ast.parse((ROOT / path).read_text("utf-8")).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef)]


def packages(number: int) -> set[str]:
    """The folders and modules directly in `minisgl/` at step `number`."""
    paths = (path.split("/")[1].removesuffix(".py") for path in tree(book(), number))
    return {name for name in paths if name != "__init__"}
