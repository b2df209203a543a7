"""Prove a step: code, recorded output, tests, red before green, budget."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .build import CONFTEST, HELPER, RETIRED, assemble, live_tests, store
from .cache import Cache, key_of, parts_of
from .closure import closure
from .difference import BUDGET_LINES, budget
from .earlycode import code_problems
from .errors import StepError
from .manifest import Book, Step
from .record import LANGUAGES, difference, expected_file, failure, stale_readme
from .run import PLUGIN, Report, python, run_main, run_tests, versions_of
from .workspace import workspace

SHOWN_LINES = 60


@dataclass
class Finding:
    """What the check of one step found; no problem means proved."""

    step: Step
    problems: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    tests: int = 0
    cached_tests: int = 0
    red: int = 0
    guards: int = 0
    lines: int = 0


class Checker:
    """Checks the steps of a book, each with what the cache does not know yet."""

    def __init__(self, book: Book, *, forced: bool = False) -> None:
        """`forced`: run everything again."""
        self._book = book
        self._cache = Cache(book.root, forced=forced)
        self._python = python(book.root)
        self._setting: list[str | bytes] = [
            versions_of(self._python),
            *(path.read_bytes() for path in sorted(PLUGIN.glob("*.py"))),
        ]

    def check(self, number: int) -> Finding:
        """Check one step."""
        found = Finding(self._book[number])
        try:
            files = assemble(self._book, number)
            found.problems += code_problems(self._book, number, files)
            self._check_budget(found)
            if stale_readme(self._book, found.step):
                found.problems.append(f"README.md is not current: {self._record(found)}")
            self._check_main(found, files)
            self._check_tests(found, files)
            self._check_red(found)
        except StepError as error:
            found.problems.append(str(error))
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            found.problems += [f"{test} is skipped in CI" for test in found.skipped]
        return found

    def _record(self, found: Finding) -> str:
        return f"python3 tools/steps.py record {found.step.number}"

    def _check_budget(self, found: Finding) -> None:
        found.lines = budget(self._book, found.step.number)
        if found.lines > BUDGET_LINES and not found.step.overrun:
            found.problems.append(
                f"{found.lines} new or changed lines of code, {BUDGET_LINES} are the budget: "
                "make it two chapters, or give the reason as `overrun` in step.toml"
            )

    def _key(self, kind: str, files: Mapping[str, bytes], paths: Iterable[str], *more: str) -> str:
        return key_of(kind, *more, *self._setting, *parts_of(files, paths))

    def _check_main(self, found: Finding, files: Mapping[str, bytes]) -> None:
        main = found.step.main
        needed = closure(files, [main], typing=True)
        for language in LANGUAGES:
            path = expected_file(found.step, language)
            if not path.is_file():
                found.problems.append(f"{main} has no {path.name}: {self._record(found)}")
                continue
            recorded = path.read_text("utf-8")
            key = self._key("main", files, needed, language, recorded)
            if self._cache.get(key):
                continue
            tree = store(self._book, found.step.number, files)
            ended = run_main(self._python, tree, main, language)
            changed = difference(recorded, ended.output)
            if ended.status != 0:
                found.problems.append(f"{main} ({language}): {failure(ended)}")
            elif changed:
                found.problems.append(f"{main} ({language}) prints something else:\n{changed}")
            else:
                self._cache.put(key, True)

    def _check_tests(self, found: Finding, files: Mapping[str, bytes]) -> None:
        live = live_tests(self._book, found.step.number)
        slow = slow_here(self._book, found.step.number)
        keys = {path: self._test_key(files, path, path in slow) for path in live}
        results = {path: self._known(files, path, path in slow) for path in live}
        found.cached_tests = sum(result["passed"] for result in results.values() if result)
        todo = [path for path, result in results.items() if result is None]
        if todo:
            tree = store(self._book, found.step.number, files)
            report = run_tests(self._python, tree, todo, slow)
            bad = [problem for path in todo for problem in problems_of(report, path)]
            found.problems += bad
            if bad:
                found.problems.append(_end_of(report.output))
            for path in todo:
                results[path] = _summary(report, path)
                if not any(problems_of(report, path)):
                    self._cache.put(keys[path], results[path])
        for result in results.values():
            found.tests += result["passed"]
            found.skipped.update(result["skipped"])

    def _test_key(self, files: Mapping[str, bytes], path: str, slow: bool) -> str:
        needed = closure(files, [path, CONFTEST, HELPER], typing=True)
        needed |= {"pyproject.toml"} & set(files)
        retired = json.loads(files.get(RETIRED, b"{}"))
        mine = {test: why for test, why in retired.items() if test.split("::")[0] == path}
        return self._key("test", files, needed, path, str(slow), json.dumps(mine))

    def _known(self, files: Mapping[str, bytes], path: str, slow: bool) -> Any:
        """A run with the slow tests has proved the others as well."""
        result = self._cache.get(self._test_key(files, path, True))
        if result is None and not slow:
            result = self._cache.get(self._test_key(files, path, False))
        return result

    def _check_red(self, found: Finding) -> None:
        """In the workspace that the reader gets, each test of the chapter fails in its own body."""
        step = found.step
        files = workspace(self._book, step.number).files
        key = self._key("red", files, set(files) - {RETIRED})
        result = self._cache.get(key)
        if result is None:
            report = run_tests(
                self._python, store(self._book, step.number, files), step.tests, step.tests
            )
            bad = red_problems(report)
            guards = sum(test.guard for test in report.tests.values())
            result = {"guards": guards, "red": len(report.tests) - guards}
            found.problems += bad
            if report.broken or not report.tests:
                found.problems.append(_end_of(report.output))
            if not bad:
                self._cache.put(key, result)
        found.red, found.guards = result["red"], result["guards"]


def problems_of(report: Report, path: str) -> list[str]:
    """Return what is wrong with the run of one test file; a file in which nothing passes is."""
    if path in report.broken:
        return [f"{path}: {report.broken[path]}"]
    tests = {name: test for name, test in report.tests.items() if name.split("::")[0] == path}
    bad = [
        f"{name}: {test.outcome} ({test.phase}): {test.reason}"
        for name, test in tests.items()
        if test.outcome not in ("passed", "skipped")
    ]
    if not tests and not report.slow_left_out.get(path):
        bad.append(f"{path}: no test ran")
    if tests and all(test.outcome == "skipped" for test in tests.values()):
        bad.append(f"{path}: every test is skipped, which proves nothing")
    return bad


def red_problems(report: Report) -> list[str]:
    """Return what is wrong with the run of a chapter's tests on its stubs."""
    bad = [f"red before green: {path}: {reason}" for path, reason in report.broken.items()]
    if not report.tests and not bad:
        bad.append("red before green: no test ran")
    for name, test in report.tests.items():
        if test.guard or test.outcome == "skipped":
            continue
        if test.outcome == "passed":
            bad.append(
                f"red before green: {name} passes before anything is written: "
                "mark it guard or sharpen it"
            )
        elif test.phase != "call":
            bad.append(f"red before green: {name} fails in {test.phase}, not in its own body")
    guards = sum(test.guard for test in report.tests.values())
    if guards * 3 > len(report.tests):
        bad.append(f"{guards} of {len(report.tests)} tests are guards: at most a third may be")
    return bad


def _summary(report: Report, path: str) -> dict[str, Any]:
    tests = {name: test for name, test in report.tests.items() if name.split("::")[0] == path}
    return {
        "passed": sum(test.outcome == "passed" for test in tests.values()),
        "skipped": {name: test.reason for name, test in tests.items() if test.outcome == "skipped"},
    }


def _end_of(output: str) -> str:
    lines = output.rstrip().splitlines()
    return "\n".join(["pytest said:", *lines[-SHOWN_LINES:]])


def slow_here(book: Book, number: int) -> list[str]:
    """Return the test files whose slow tests run at step `number`: its own; at the last, all."""
    live = live_tests(book, number)
    return [path for path in live if number == book.last.number or path in book[number].tests]
