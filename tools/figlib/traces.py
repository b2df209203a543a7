"""Traces: what real runs did, recorded once, kept with a hash of the code that did it."""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.lang import tr
from tools.steplib import tree

from . import data
from .errors import FigureError
from .runs import overlapping, part1, part2, part3, preempting, radix, scheduling

TRACES = data.ROOT / "docs" / "traces"
RUNS = "tools/figlib/runs"

# Name of the trace, and of the function that records it -> its step, the module of that function.
RECORDERS = {
    "ch01_req": (1, part1),
    "ch02_layers": (2, part1),
    "ch03_models": (3, part1),
    "ch04_runner": (4, part1),
    "ch05_kv_cache": (5, part2),
    "ch06_paged_pool": (6, part2),
    "ch07_attention": (7, part2),
    "ch08_radix_cache": (8, radix),
    "ch08_cache_req": (8, radix),
    "ch09_sampler": (9, part3),
    "demo": (10, part3),
    "ch10_scheduler": (10, scheduling),
    "ch12_static": (9, scheduling),
    "ch12_continuous": (10, scheduling),
    "ch12_chunked_prefill": (12, scheduling),
    "ch13_preemption": (13, preempting),
    "ch14_overlap": (14, overlapping),
}


def load(name: str) -> dict[str, Any]:
    """What was recorded; FigureError when it is missing or the code has changed since."""
    fault = find_fault(name)
    if fault:
        raise FigureError(fault)
    trace: dict[str, Any] = _document(name)["trace"]
    return trace


def find_fault(name: str) -> str | None:
    """One line that says what is wrong with a trace and what to do, or None."""
    again = f"python3 tools/figures.py record {name}"
    try:
        recorded = _document(name)["made_by"]
    except (OSError, ValueError, KeyError, TypeError):
        return tr(
            f"docs/traces/{name}.json 缺失或损坏：请运行 {again}",
            f"docs/traces/{name}.json is missing or damaged: run {again}",
        )
    now = made_by(name)
    changed = sorted(p for p in {*recorded, *now} if recorded.get(p) != now.get(p))
    if not changed:
        return None
    what = changed[0] + ("" if len(changed) == 1 else f" (+{len(changed) - 1})")
    return tr(
        f"docs/traces/{name}.json 已过期，{what} 在记录之后改过：请运行 {again}",
        f"docs/traces/{name}.json is stale, {what} has changed since: run {again}",
    )


def record(name: str) -> Path:
    """Run the step and write its trace; only this needs torch, and most traces the model."""
    if name not in RECORDERS:
        raise FigureError(
            tr(
                f"没有名为 {name} 的记录，可选：{'、'.join(RECORDERS)}",
                f"there is no trace {name}, choose one of {', '.join(RECORDERS)}",
            )
        )
    number, recorders = RECORDERS[name]
    try:
        with _bench().StepProcess(number, recorders.ready) as step:
            trace = step(getattr(recorders, name))
    except RuntimeError as error:
        raise FigureError(tr(f"记录失败：{error}", f"recording failed: {error}")) from None
    document = {"step": number, "made_by": made_by(name), "trace": trace}
    path = TRACES / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_text(document) + "\n", "utf-8")
    return path


def made_by(name: str) -> dict[str, str]:
    """File -> hash of what it does, for all that a trace came from: step, main, recorder."""
    number, recorders = RECORDERS[name]
    found = {path: version.location for path, version in tree(data.book(), number).items()}
    module = recorders.__name__.rpartition(".")[2]
    main = "tools/demo.py" if name == "demo" else data.book()[number].main
    for path in (main, f"{RUNS}/{module}.py", f"{RUNS}/listening.py"):
        found[path] = data.ROOT / path
    return {path: _file_hash(location) for path, location in found.items()}


@cache
def _file_hash(location: Path) -> str:
    """Comments, docstrings and layout do not count, so editing them makes no trace stale."""
    digest: str = _bench().script_hash(location)
    return digest[:16]


def _document(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((TRACES / f"{name}.json").read_text("utf-8"))
    return document


def _text(value: Any, depth: int = 0) -> str:
    """JSON with an event to a line: small, and a difference can be read."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + depth <= 100 or depth >= 3 or not isinstance(value, dict | list):
        return flat
    pad, end = " " * (depth + 1), " " * depth
    if isinstance(value, list):
        return "[\n" + ",\n".join(pad + _text(one, depth + 1) for one in value) + f"\n{end}]"
    pairs = (f"{json.dumps(key)}: {_text(one, depth + 1)}" for key, one in value.items())
    return "{\n" + ",\n".join(pad + pair for pair in pairs) + f"\n{end}}}"


@cache
def _bench() -> ModuleType:
    """bench/_bench.py, which runs a step in a process of its own and knows what code does."""
    if "_bench" in sys.modules:
        return sys.modules["_bench"]
    path = data.ROOT / "bench" / "_bench.py"
    spec = importlib.util.spec_from_file_location("_bench", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["_bench"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
