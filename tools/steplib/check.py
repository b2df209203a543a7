"""Prove steps: code, recorded output, tests, red before green, budget.

A part of a check that runs something is a generator: it begins its run, and after the `yield` it
says what came of it. So the runs of all steps follow each other without a gap, two at a time.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from .build import RETIRED, assemble, live_tests, store
from .cache import Cache
from .closure import closure
from .difference import BUDGET_LINES, budget
from .earlycode import code_problems
from .errors import StepError
from .manifest import Book, Step
from .record import LANGUAGES, difference, expected_file, failure, stale_readme
from .results import Files, Results
from .run import Report, python, run_main, run_tests, side_by_side
from .workspace import workspace

SHOWN_LINES = 60


@dataclass
class Finding:
    """What the check of one step found; no problem means proved.

    `seconds` is how long its runs took together.
    """

    step: Step
    problems: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    tests: int = 0
    cached_tests: int = 0
    red: int = 0
    guards: int = 0
    lines: int = 0
    seconds: float = 0.0


Part = Iterator[None]


class Checker:
    """Checks the steps of a book, each with what the cache does not know yet."""

    def __init__(self, book: Book, *, forced: bool = False) -> None:
        """`forced`: run everything again."""
        self._book = book
        self._python = python(book.root)
        self._cache = Cache(book.root, forced=forced)
        self._results = Results(self._cache)

    def check(self, numbers: Sequence[int]) -> Iterator[Finding]:
        """Check steps; their findings come in order, while the runs of others go on."""
        # What the last step runs takes longest: begun last, it would be alone at the end.
        longest_first = sorted(numbers, key=lambda number: number != self._book.last.number)
        with side_by_side(self._python) as pool:
            begun = {number: self._begin(number, pool) for number in longest_first}
            for number in numbers:
                found, parts = begun[number]
                _go_on(found, parts)
                if os.environ.get("CI", "").lower() not in ("", "0", "false"):
                    found.problems += [f"{test} is skipped in CI" for test in found.skipped]
                yield found

    def _begin(self, number: int, pool: ThreadPoolExecutor) -> tuple[Finding, list[Part]]:
        found = Finding(self._book[number])
        parts: list[Part] = []
        try:
            files = assemble(self._book, number)
            found.problems += code_problems(self._book, number, files)
            self._check_budget(found)
            if stale_readme(self._book, found.step):
                found.problems.append(f"README.md is not current: {_record(found)}")
            parts = [self._check_tests(found, files, pool), self._check_red(found, pool)]
            parts += [self._check_main(found, files, language, pool) for language in LANGUAGES]
        except StepError as error:
            found.problems.append(str(error))
        _go_on(found, parts)
        return found, parts

    def _check_budget(self, found: Finding) -> None:
        found.lines = budget(self._book, found.step.number)
        if found.lines > BUDGET_LINES and not found.step.overrun:
            found.problems.append(
                f"{found.lines} new or changed lines of code, {BUDGET_LINES} are the budget: "
                "make it two chapters, or give the reason as `overrun` in step.toml"
            )

    def _check_main(
        self, found: Finding, files: Files, language: str, pool: ThreadPoolExecutor
    ) -> Part:
        main, path = found.step.main, expected_file(found.step, language)
        if not path.is_file():
            found.problems.append(f"{main} has no {path.name}: {_record(found)}")
            return
        recorded = path.read_text("utf-8")
        needed = closure(files, [main])
        key = self._cache.key("main", files, needed, language, recorded)
        if self._cache.get(key):
            return
        tree = store(self._book, found.step.number, files)
        run = pool.submit(run_main, self._python, tree, main, language)
        yield
        ended = run.result()
        found.seconds += ended.seconds
        changed = difference(recorded, ended.output)
        if ended.status != 0:
            found.problems.append(f"{main} ({language}): {failure(ended)}")
        elif changed:
            found.problems.append(f"{main} ({language}) prints something else:\n{changed}")
        else:
            self._cache.put(key, True)

    def _check_tests(self, found: Finding, files: Files, pool: ThreadPoolExecutor) -> Part:
        live = live_tests(self._book, found.step.number)
        slow = slow_here(self._book, found.step.number)
        known = {path: self._results.find(files, path, path in slow) for path in live}
        results = {path: result for path, result in known.items() if result}
        todo = [path for path in live if path not in results]
        if todo:
            tree = store(self._book, found.step.number, files)
            run = pool.submit(run_tests, self._python, tree, todo, slow)
            for path in todo:
                results[path] = self._results.expect(files, path, path in slow, run)
        yield
        ended = {path: results[path]() for path in live}
        for path, result in ended.items():
            found.problems += result.problems
            found.skipped.update(result.skipped)
            found.tests += result.passed
            found.cached_tests += 0 if path in todo else result.passed
        if todo:
            found.seconds += run.result().seconds
            if any(ended[path].problems for path in todo):
                found.problems.append(_end_of(run.result()))

    def _check_red(self, found: Finding, pool: ThreadPoolExecutor) -> Part:
        """In the workspace that the reader gets, each test of the chapter fails in its own body."""
        step = found.step
        files = workspace(self._book, step.number).files
        key = self._cache.key("red", files, set(files) - {RETIRED})
        result = self._cache.get(key)
        if result is None:
            tree = store(self._book, step.number, files)
            words = (self._python, tree, step.tests, step.tests)
            run = pool.submit(run_tests, *words, brief=True)
            yield
            report = run.result()
            found.seconds += report.seconds
            bad = red_problems(report)
            guards = sum(test.guard for test in report.tests.values())
            result = {"guards": guards, "red": len(report.tests) - guards}
            found.problems += bad
            if report.broken or not report.tests:
                found.problems.append(_end_of(report))
            if not bad:
                self._cache.put(key, result)
        found.red, found.guards = result["red"], result["guards"]


def _go_on(found: Finding, parts: list[Part]) -> None:
    """Let the parts of a check go on to where they stop next."""
    for part in parts:
        try:
            next(part, None)
        except StepError as error:
            found.problems.append(str(error))


def _record(found: Finding) -> str:
    return f"python3 tools/steps.py record {found.step.number}"


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


def _end_of(report: Report) -> str:
    lines = report.output.rstrip().splitlines()
    return "\n".join(["pytest said:", *lines[-SHOWN_LINES:]])


def slow_here(book: Book, number: int) -> list[str]:
    """Return the test files whose slow tests run at step `number`: its own; at the last, all."""
    live = live_tests(book, number)
    return [path for path in live if number == book.last.number or path in book[number].tests]
