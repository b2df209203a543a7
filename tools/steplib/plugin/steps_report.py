"""A pytest plugin that tells what becomes of each test while it runs, as lines of JSON.

The step's process loads it by name (`-p steps_report`); nothing else of the tools is importable
there. STEPS_REPORT names the file to write, STEPS_SLOW_FILES (joined by `:`) the test files whose
slow tests are to run, STEPS_SECONDS how long a test may take (a slow one ten times as long; 0: for
ever), STEPS_NO_END what is said of one that takes longer. With STEPS_SMALL_FIRST the large
tests come behind the small, the slow last, and none runs where a smaller one has failed.
"""

import json
import linecache
import os
import signal
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

SECONDS = int(os.environ.get("STEPS_SECONDS", "0"))
SLOW_SECONDS = 10 * SECONDS
SMALL_FIRST = bool(os.environ.get("STEPS_SMALL_FIRST"))
MOST = 200  # characters of a value or a line
MOST_LINES = 12  # of what pytest says of a failure
TREE = os.environ["MINISGL_TREE"] + os.sep

_file = open(os.environ["STEPS_REPORT"], "a", 1, encoding="utf-8")  # noqa: SIM115 (till the end)
_tests: dict[str, dict[str, Any]] = {}
_compared: dict[str, str] = {}
_limit = SECONDS


def _tell(event: str, **more: Any) -> None:
    _file.write(json.dumps({"event": event, **more}) + "\n")


def _file_of(nodeid: str) -> str:
    return nodeid.split("::")[0]


# --- which tests there are ----------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    global _limit
    if not isinstance(collector, pytest.Module):
        return (yield)
    _limit = SECONDS
    _tell("begin", name=_file_of(collector.nodeid), seconds=_limit)
    with _limited():
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow_files = os.environ["STEPS_SLOW_FILES"].split(":")
    left_out: dict[str, int] = {}
    kept: list[pytest.Item] = []
    gone: list[pytest.Item] = []
    for item in items:
        path = _file_of(item.nodeid)
        if item.get_closest_marker("slow") and path not in slow_files:
            gone.append(item)
            left_out[path] = left_out.get(path, 0) + 1
            continue
        kept.append(item)
        guard = item.get_closest_marker("guard") is not None
        # A test that asks for a model runs all layers of the engine.
        large = any(name.endswith("_model") for name in getattr(item, "fixturenames", ()))
        large = large or item.get_closest_marker("slow") is not None
        entry = {"outcome": "not run", "phase": "", "reason": "", "guard": guard, "large": large}
        _tests[item.nodeid] = entry
    _tell("collected", tests=_tests, slow_left_out=left_out)
    if SMALL_FIRST:
        kept.sort(key=_size)
    items[:] = kept
    if gone:
        config.hook.pytest_deselected(items=gone)


def _size(item: pytest.Item) -> int:
    return _tests[item.nodeid]["large"] + (item.get_closest_marker("slow") is not None)


def pytest_exception_interact(node: Any, call: Any, report: Any) -> None:
    if isinstance(report, pytest.CollectReport):
        error = call.excinfo.value
        error = error.__cause__ or error  # pytest wraps what an import raises
        reason = traceback.format_exception_only(error)[-1].strip()
        _tell("broken", path=_file_of(report.nodeid), reason=reason, place=_place(error))


# --- what becomes of a test ---------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, Any, Any]:
    global _limit
    _limit = SLOW_SECONDS if item.get_closest_marker("slow") else SECONDS
    _compared.clear()
    _tell("begin", name=item.nodeid, seconds=_limit)
    result = yield
    _tell("test", name=item.nodeid, **_tests[item.nodeid])
    failed = any(one["outcome"] == "failed" for one in _tests.values())
    if SMALL_FIRST and failed and nextitem and _size(nextitem) > _size(item):
        item.session.shouldstop = "the small tests first"
    return result


@contextmanager
def _limited() -> Iterator[None]:
    if not _limit:
        yield
        return
    before = signal.signal(signal.SIGALRM, _no_end)
    signal.setitimer(signal.ITIMER_REAL, _limit, 1)  # again and again: code may catch the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _no_end(*_: object) -> None:
    pytest.fail(os.environ["STEPS_NO_END"].format(_limit))


@pytest.hookimpl(wrapper=True)
def _phase() -> Generator[None, Any, Any]:
    with _limited():
        return (yield)


pytest_runtest_setup: Callable[[], Any] = _phase
pytest_runtest_call: Callable[[], Any] = _phase
pytest_runtest_teardown: Callable[[], Any] = _phase


def pytest_assertrepr_compare(op: str, left: object, right: object) -> None:
    """Note the values; how they are shown stays pytest's business."""
    _compared.update(op=op, got=_shown(left), expected=_shown(right))


def _shown(value: object) -> str:
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = object.__repr__(value)
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= MOST else text[:MOST] + " …"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
    report = yield
    entry = _tests[item.nodeid]
    if entry["outcome"] in ("failed", "skipped") or (report.passed and call.when != "call"):
        return report
    entry.update(outcome=report.outcome, phase=report.when)
    if not report.passed:
        entry["reason"], *more = _reason(report)
        entry["more"] = [_cut(line) for line in more[:MOST_LINES]]
    if report.failed:
        error = call.excinfo.value
        entry.update(place=_place(error), source=_source(error))
        if isinstance(error, AssertionError) and _compared.get("op") == "==":
            entry.update(got=_compared["got"], expected=_compared["expected"])
    return report


def _reason(report: pytest.TestReport) -> list[str]:
    """One line that says why, and what pytest adds to it."""
    found = report.longrepr
    if isinstance(found, tuple):
        return [str(found[2]).removeprefix("Skipped: ")]
    crash = getattr(found, "reprcrash", None)
    text = crash.message if crash else str(found)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines if crash else lines[-1:]) or ["no reason given"]


def _place(error: BaseException) -> str:
    """Where in the reader's code it happened, as `minisgl/core.py:12`; empty: not there."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename.removeprefix(TREE)}:{error.lineno}"
    places = [place for place, _ in _frames(error) if not place.startswith("tests/")]
    return places[-1] if places else ""


def _source(error: BaseException) -> str:
    """The test's own last line, with its place."""
    lines = [f"{place}: {line}" for place, line in _frames(error) if place.startswith("tests/")]
    return lines[-1] if lines else ""


def _frames(error: BaseException) -> Iterator[tuple[str, str]]:
    for frame, number in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        name = path.removeprefix(TREE)
        if name != path and not name.endswith("conftest.py"):
            yield f"{name}:{number}", linecache.getline(path, number).strip()


def pytest_sessionfinish() -> None:
    _tell("end")
