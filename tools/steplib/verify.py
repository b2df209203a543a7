"""Run a chapter's tests on the reader's workspace, and again only where something has changed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.lang import tr

from .build import RETIRED, assemble, live_tests, write_files
from .cache import Cache
from .errors import StepError
from .manifest import Book
from .results import test_key
from .run import Report, Tell, Test, python, run_tests
from .workspace import Todo, one_line, read_folder, todos

SECONDS = 60  # that a test may take; a slow one ten times that


@dataclass(frozen=True)
class Verdict:
    """What the tests say of a workspace.

    `earlier` is the run of the earlier chapters' tests: None until the chapter's own are green, or
    where there are none.
    """

    own: Report
    earlier: Report | None
    todos: list[Todo]

    @property
    def passed(self) -> bool:
        """Whether every test of the chapter passes, and every earlier one that still counts."""
        return is_green(self.own) and (self.earlier is None or is_green(self.earlier))


def is_green(report: Report) -> bool:
    """Say whether something ran, nothing failed and not all was skipped."""
    outcomes = {test.outcome for test in report.tests.values()}
    return not report.broken and outcomes <= {"passed", "skipped"} and "passed" in outcomes


def verify(book: Book, number: int, folder: Path, tell: Tell) -> Verdict:
    """Run chapter `number`'s tests on a workspace, then the earlier ones; both copied afresh.

    `tell` gets what happens as it happens, and `{"event": "part", …}` before each of the two.
    """
    step = book[number]
    if not (folder / step.main).is_file() and not (folder / "minisgl").is_dir():
        raise StepError(
            tr(
                f"{folder} 不是工作区：先运行 python3 tools/steps.py start {number}",
                f"{folder} is not a workspace: run python3 tools/steps.py start {number} first",
            )
        )
    fresh = assemble(book, number, package={})
    with one_line(folder):
        for path in [path for path in fresh if path.startswith("examples/ch")]:
            if (folder / path).exists():  # a main is the reader's to play with, once it is there
                del fresh[path]
        write_files(fresh, folder)
        if RETIRED not in fresh:
            (folder / RETIRED).unlink(missing_ok=True)
    files = read_folder(folder)
    runs = _Runs(book, folder.resolve(), files | fresh, tell)
    earlier = [path for path in live_tests(book, number) if path not in step.tests]
    tell({"event": "part", "own": True})
    own, report = runs.run(step.tests, slow=True), None
    if is_green(own) and earlier:
        tell({"event": "part", "own": False, "report": own})
        report = runs.run(earlier, slow=False)
    left = [todo for todo in todos(files) if todo.chapter == number]
    return Verdict(own, report, left)


class _Runs:
    """Runs of test files in one folder; a file that was green runs when what it needs changes."""

    def __init__(self, book: Book, folder: Path, files: Mapping[str, bytes], tell: Tell) -> None:
        self._python, self._folder, self._files, self._tell = python(book.root), folder, files, tell
        self._cache = Cache(book.root)

    def run(self, paths: tuple[str, ...] | list[str], *, slow: bool) -> Report:
        keys = {path: self._key(path, slow) for path in paths}
        known = {path: self._cache.get(key) if key else None for path, key in keys.items()}
        todo = [path for path in paths if known[path] is None]
        old: dict[str, Test] = {}
        for path in paths:
            if path not in todo:
                old |= {name: Test(**entry) for name, entry in (known[path] or {}).items()}
        self._tell({"event": "known", "tests": old})
        found = Report()
        try:
            if todo:
                run_tests(
                    self._python, self._folder, todo, todo if slow else (), brief=True,
                    small_first=True, seconds=SECONDS, tell=self._tell, report=found,
                )  # fmt: skip
        finally:  # what has passed before an interrupt need not run again
            for path in todo:
                tests = {name: test for name, test in found.tests.items() if _is_of(name, path)}
                if keys[path] and path not in found.broken and is_green(Report(tests=tests)):
                    kept = {name: asdict(test) for name, test in tests.items()}
                    self._cache.put(keys[path], kept)
        found.tests |= old
        return found

    def _key(self, path: str, slow: bool) -> str:
        try:
            return test_key(self._cache, "verify", self._files, path, slow)
        except StepError:  # what does not parse is run, to be told where
            return ""


def _is_of(name: str, path: str) -> bool:
    return name.partition("::")[0] == path
