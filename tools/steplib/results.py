"""Results of test files: what a good one is, what it depends on, which are known."""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from functools import partial

from .build import CONFTEST, HELPER, RETIRED, assemble, live_tests
from .cache import Cache
from .closure import closure
from .manifest import Book
from .run import Report
from .storage import storage_problems

Files = Mapping[str, bytes]
KIND = "test"


@dataclass
class Result:
    """What became of one test file: how many tests passed, which were skipped, what is wrong."""

    passed: int
    skipped: dict[str, str]
    problems: list[str] = field(default_factory=list)


Ask = Callable[[], Result]


class Results:
    """The results of test files that are in the cache, and those that runs are about to bring."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._to_come: dict[str, Ask] = {}

    def find(self, files: Files, path: str, slow: bool) -> Ask | None:
        """Return how to ask for the result of a test file, which may wait for its run; or None.

        A run with the slow tests proves the others as well.
        """
        for with_slow in (True,) if slow else (True, False):
            key = test_key(self._cache, KIND, files, path, with_slow)
            if key in self._to_come:
                return self._to_come[key]
            if kept := self._cache.get(key):
                return partial(Result, **kept)
        return None

    def expect(self, files: Files, path: str, slow: bool, run: Future[Report]) -> Ask:
        """Return the same for a run that is under way; what is good then is kept."""
        key = test_key(self._cache, KIND, files, path, slow)

        def ask() -> Result:
            return result_of(run.result(), path)

        def keep(_: object) -> None:
            if not run.cancelled() and not run.exception() and not ask().problems:
                self._cache.put(key, asdict(ask()))

        run.add_done_callback(keep)
        self._to_come[key] = ask
        return ask


def test_key(cache: Cache, kind: str, files: Files, path: str, slow: bool) -> str:
    """Return the key of a test file's result: a hash of the file, all it leads to, and how it runs.

    Of what is retired only the file's own tests matter.
    """
    needed = closure(files, [path, CONFTEST, HELPER])
    needed |= {"pyproject.toml"} & set(files)
    retired = json.loads(files.get(RETIRED, b"{}"))
    mine = {test: why for test, why in retired.items() if test.split("::")[0] == path}
    return cache.key(kind, files, needed, path, str(slow), json.dumps(mine))


def result_of(report: Report, path: str) -> Result:
    """Return what a run says of one test file; a file in which nothing passes is no good."""
    tests = {name: test for name, test in report.tests.items() if name.split("::")[0] == path}
    passed = sum(test.outcome == "passed" for test in tests.values())
    skipped = {name: test.reason for name, test in tests.items() if test.outcome == "skipped"}
    bad = [
        f"{name}: {test.outcome} ({test.phase}): {test.reason}"
        for name, test in tests.items()
        if test.outcome not in ("passed", "skipped")
    ]
    if not tests and not report.slow_left_out.get(path):
        bad = [f"{path}: no test ran"]
    if tests and len(skipped) == len(tests):
        bad = [f"{path}: every test is skipped, which proves nothing"]
    if path in report.broken:
        bad = [f"{path}: {report.broken[path]}"]
    return Result(passed, skipped, bad)


def proved(book: Book) -> dict[str, int]:
    """Return test file -> number of tests, for what a check of the last step has found to pass.

    The last step is the package as it lies here: at the root these need not run again.
    """
    if any(storage_problems(book)):
        return {}
    results = Results(Cache(book.root))
    files, live = assemble(book, book.last.number), live_tests(book, book.last.number)
    known = {path: ask() for path in live if (ask := results.find(files, path, True))}
    return {path: result.passed for path, result in known.items() if not result.skipped}
