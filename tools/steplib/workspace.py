"""The reader's side: a workspace with stubs to fill in, and the verdict on it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.lang import tr

from .build import RETIRED, assemble, empty_folder, live_tests, package_files, write_files
from .errors import StepError
from .manifest import Book, Step
from .merge import merge
from .run import Report, python, run_tests
from .source import decode, parse
from .stubs import changed_functions, stub_source

STUB = re.compile(r'raise NotImplementedError\("chapter (\d+): ([\w.]+)"\)')


@dataclass(frozen=True)
class Stub:
    """A function that is still to be written."""

    path: str
    line: int
    name: str


def workspace_files(book: Book, number: int, mine: Path | None = None) -> dict[str, bytes]:
    """Return path -> content of the folder in which a reader writes chapter `number`.

    The package is that of the step before, or the reader's own in `mine`; what the chapter brings
    is there as stubs. A chapter that writes nothing has its main as what the reader writes.
    """
    step = book[number]
    previous = book.before(step)
    old = package_files(book, previous.number) if previous else {}
    new = package_files(book, number)
    package = {path: content for path, content in old.items() if path in new}
    if mine is not None:
        package.update(_package_of(mine, step))
    for path in step.writes:
        stub = _stub(old.get(path), new[path], step, path)
        if mine is not None and path in old and path in package:
            stub = _with_mine(package[path], old[path], new[path], stub, path)
        package[path] = stub
    files = assemble(book, number, package=package, tests=step.tests)
    if not step.writes:
        files[step.main] = _stub(None, files[step.main], step, step.main)
    return files


def _package_of(mine: Path, step: Step) -> dict[str, bytes]:
    if not (mine / "minisgl").is_dir():
        raise StepError(
            tr(f"{mine} 里没有 minisgl/ 文件夹", f"{mine} has no folder minisgl/ to go on from")
        )
    paths = {path.relative_to(mine).as_posix(): path for path in (mine / "minisgl").rglob("*")}
    return {
        name: _read(path)
        for name, path in sorted(paths.items())
        if (path.is_file() or _is_source(path))
        and "__pycache__" not in path.parts
        and name not in step.removes
    }


def _is_source(path: Path) -> bool:
    """Say whether a file is expected there; an editor's lock is a link `.#box.py` to nowhere."""
    return path.suffix == ".py" and not path.name.startswith(".")


def _read(path: Path) -> bytes:
    with _one_line(path):
        return path.read_bytes()


@contextmanager
def _one_line(place: Path) -> Iterator[None]:
    """Turn what the reader's folder has in the way (a folder, a link in a circle) into one line."""
    try:
        yield
    except OSError as error:
        raise StepError(f"{error.filename or place}: {error.strerror or error}") from None


def _stub(old: bytes | None, new: bytes, step: Step, path: str) -> bytes:
    if not path.endswith(".py"):
        return new
    before = None if old is None else decode(old, path)
    return stub_source(before, decode(new, path), f"chapter {step.number}", path).encode()


def _with_mine(mine: bytes, old: bytes, new: bytes, stub: bytes, path: str) -> bytes:
    """Carry the chapter's stubs into the reader's file; where that fails, the stubs alone."""
    if not path.endswith(".py"):
        return stub
    merged, _ = merge(mine, old, stub, "--theirs")
    wanted = {name for name, _ in changed_functions(decode(old, path), decode(new, path), path)}
    try:
        parse(decode(merged, path), path)
    except StepError:
        return stub
    stubbed = {stub.name for stub in _stubs_in(decode(merged, path), path)}
    return merged if wanted <= stubbed else stub


def _stubs_in(text: str, path: str, number: int | None = None) -> list[Stub]:
    return [
        Stub(path, line, found[2])
        for line, content in enumerate(text.split("\n"), 1)
        if (found := STUB.search(content)) and number in (None, int(found[1]))
    ]


def start(book: Book, number: int, folder: Path, mine: Path | None = None) -> list[Stub]:
    """Write the workspace of chapter `number` into `folder` (new or empty); return its stubs."""
    files = workspace_files(book, number, mine)
    with _one_line(folder):
        write_files(files, empty_folder(folder))
    return stubs_left(files, number)


def stubs_left(files: Mapping[str, bytes], number: int) -> list[Stub]:
    """Return the functions of chapter `number` that are still stubs in `files`."""
    return [
        stub
        for path, content in sorted(files.items())
        if path.startswith(("minisgl/", "examples/")) and path.endswith(".py")
        for stub in _stubs_in(content.decode("utf-8", "replace"), path, number)
    ]


@dataclass(frozen=True)
class Verdict:
    """What the tests say of a workspace.

    `earlier` is the run of the earlier chapters' tests: None until the chapter's own are green, or
    where there are none.
    """

    own: Report
    earlier: Report | None
    stubs: list[Stub]

    @property
    def passed(self) -> bool:
        """Whether every test of the chapter passes, and every earlier one that still counts."""
        return is_green(self.own) and (self.earlier is None or is_green(self.earlier))


def is_green(report: Report) -> bool:
    """Say whether something ran, nothing failed and not all was skipped."""
    outcomes = {test.outcome for test in report.tests.values()}
    return not report.broken and outcomes <= {"passed", "skipped"} and "passed" in outcomes


def verify(book: Book, number: int, folder: Path) -> Verdict:
    """Run chapter `number`'s tests on a workspace, then the earlier ones; both copied afresh."""
    step = book[number]
    if not (folder / step.main).is_file() and not (folder / "minisgl").is_dir():
        raise StepError(
            tr(
                f"{folder} 不是工作区：先运行 python3 tools/steps.py start {number}",
                f"{folder} is no workspace: run python3 tools/steps.py start {number} first",
            )
        )
    fresh = assemble(book, number, package={})
    mains = {path for path in fresh if path.startswith("examples/ch")}
    with _one_line(folder):
        kept = {path for path in fresh if _keeps(folder, path, mains)}
        write_files({path: fresh[path] for path in fresh if path not in kept}, folder)
        if RETIRED not in fresh:
            (folder / RETIRED).unlink(missing_ok=True)
    written = {
        path.relative_to(folder).as_posix(): _read(path)
        for part in ("minisgl", "examples")
        for path in (folder / part).rglob("*.py")
        if _is_source(path)
    }
    interpreter = python(book.root)
    own = run_tests(interpreter, folder.resolve(), step.tests, step.tests)
    earlier = [path for path in live_tests(book, number) if path not in step.tests]
    report = None
    if is_green(own) and earlier:
        report = run_tests(interpreter, folder.resolve(), earlier)
    return Verdict(own, report, stubs_left(written, number))


def _keeps(folder: Path, path: str, mains: set[str]) -> bool:
    """A main is the reader's to play with, once it is there."""
    return path in mains and (folder / path).exists()
