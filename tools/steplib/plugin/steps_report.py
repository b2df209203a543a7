"""A pytest plugin that writes down what became of each test, as JSON.

The step's process loads it by name (`-p steps_report`); nothing else of the tools is importable
there. STEPS_REPORT names the file to write, STEPS_SLOW_FILES (joined by `:`) the test files whose
slow tests are to run.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

_tests: dict[str, dict[str, Any]] = {}
_broken: dict[str, str] = {}
_left_out: dict[str, int] = {}


def _file(nodeid: str) -> str:
    return nodeid.split("::")[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow_files = os.environ["STEPS_SLOW_FILES"].split(":")
    kept: list[pytest.Item] = []
    gone: list[pytest.Item] = []
    for item in items:
        slow = item.get_closest_marker("slow") and _file(item.nodeid) not in slow_files
        (gone if slow else kept).append(item)
    for item in gone:
        _left_out[_file(item.nodeid)] = _left_out.get(_file(item.nodeid), 0) + 1
    for item in kept:
        guard = item.get_closest_marker("guard") is not None
        _tests[item.nodeid] = {"outcome": "not run", "phase": "", "reason": "", "guard": guard}
    if gone:
        items[:] = kept
        config.hook.pytest_deselected(items=gone)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.outcome != "passed":
        _broken[_file(report.nodeid)] = _reason(report)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    entry = _tests[report.nodeid]
    if report.outcome == "passed" and report.when != "call":
        return
    if entry["outcome"] in ("failed", "skipped"):
        return
    entry.update(outcome=report.outcome, phase=report.when, reason="")
    if report.outcome != "passed":
        entry["reason"] = _reason(report)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The last line that says why."""
    found = report.longrepr
    if isinstance(found, tuple):
        return str(found[2]).removeprefix("Skipped: ")
    crash = getattr(found, "reprcrash", None)
    text = crash.message if crash else str(found)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if crash else lines[-1]) if lines else "no reason given"


def pytest_sessionfinish() -> None:
    data = {"tests": _tests, "broken": _broken, "slow_left_out": _left_out}
    Path(os.environ["STEPS_REPORT"]).write_text(json.dumps(data), "utf-8")
