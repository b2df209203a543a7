"""Put a step together in a folder of its own: package, main, tests, and what these need."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from tools.lang import tr

from .closure import imports
from .errors import StepError
from .manifest import Book, Step
from .source import decode
from .tree import tree

HELPER = "examples/_step.py"
CONFTEST = "tests/conftest.py"
RETIRED = "tests/retired.json"
DAY = 86400.0


def package_files(book: Book, number: int) -> dict[str, bytes]:
    """Return path -> content of the package at step `number`."""
    return {path: version.read() for path, version in tree(book, number).items()}


def live_tests(book: Book, number: int) -> dict[str, Step]:
    """Return test file -> the step it belongs to, for the files not retired as a whole."""
    retired = retirements(book, number)
    found = {test: step for step in book.up_to(number) for test in step.tests}
    return {test: step for test, step in found.items() if test not in retired}


def retirements(book: Book, number: int) -> dict[str, str]:
    """Return retired test or file -> reason, for what the steps up to `number` retire."""
    return {
        entry.test: f"{entry.why} ({step.label}: {entry.by})"
        for step in book.up_to(number)
        for entry in step.retires
    }


def assemble(
    book: Book,
    number: int,
    *,
    package: Mapping[str, bytes] | None = None,
    tests: Iterable[str] | None = None,
) -> dict[str, bytes]:
    """Return path -> content of a whole step folder.

    `package` replaces the step's own package files (a workspace, a submission); `tests` narrows
    the test files, which are otherwise all that are alive at the step.
    """
    files = dict(package_files(book, number) if package is None else package)
    wanted = [book[number].main, *(live_tests(book, number) if tests is None else tests)]
    for path in wanted:
        files[path] = _read(book.root, path)
    for path in (HELPER, CONFTEST, "pyproject.toml"):
        if (book.root / path).is_file():
            files[path] = _read(book.root, path)
    _add_test_helpers(book, number, files)
    retired = retirements(book, number)
    if retired:
        files[RETIRED] = json.dumps(retired, ensure_ascii=False, indent=1).encode()
    return files


def _read(root: Path, path: str) -> bytes:
    try:
        return (root / path).read_bytes()
    except OSError as error:
        raise StepError(f"{path}: {error.strerror} (a step.toml names it)") from None


def _add_test_helpers(book: Book, number: int, files: dict[str, bytes]) -> None:
    """Tests bring the helper modules beside them, and the earlier mains that they load by name."""
    todo = [path for path in files if path.startswith("tests/") and path.endswith(".py")]
    while todo:
        path = todo.pop()
        text = decode(files[path], path)
        names = {wanted.module.split(".")[0] for wanted in imports(text, path)}
        found = [f"tests/{name}.py" for name in sorted(names)]
        mains = [step.main for step in book.up_to(number)]
        found += [main for main in mains if PurePosixPath(main).name in text]
        for other in found:
            if other not in files and (book.root / other).is_file():
                files[other] = _read(book.root, other)
                todo.append(other)


def digest(files: Mapping[str, bytes]) -> str:
    """Return a short hash of paths and contents."""
    total = hashlib.sha256()
    for path, content in sorted(files.items()):
        total.update(f"{path}\0{len(content)}\0".encode() + content)
    return total.hexdigest()[:16]


def build(
    book: Book,
    number: int,
    folder: Path | None = None,
    *,
    package: Mapping[str, bytes] | None = None,
) -> Path:
    """Write step `number` into `folder` (new or empty), or into a folder named by its content.

    The latter lies under `.steps/trees/` and is made once; returns the folder.
    """
    files = assemble(book, number, package=package)
    if folder is None:
        return store(book, number, files)
    write_files(files, empty_folder(folder))
    return folder


def store(book: Book, number: int, files: Mapping[str, bytes]) -> Path:
    """Make the folder `.steps/trees/chNN-HASH` of these files, if it is not there.

    It appears as a whole, also when several processes make it at once.
    """
    folder = state_folder(book.root) / "trees" / f"{book[number].label}-{digest(files)}"
    if folder.is_dir():
        os.utime(folder)  # what is in use is not old
        return folder
    folder.parent.mkdir(exist_ok=True)
    _drop_old(folder)
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder.parent))
    write_files(files, draft)
    try:
        draft.rename(folder)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _drop_old(folder: Path) -> None:
    """Remove the chapter's trees of a day ago, and the drafts of processes that were killed."""
    label = folder.name.split("-")[0]
    for other in (*folder.parent.glob(f"{label}-*"), *folder.parent.glob("draft-*")):
        with contextlib.suppress(OSError):
            if time.time() - other.stat().st_mtime > DAY:
                shutil.rmtree(other, ignore_errors=True)


def state_folder(root: Path) -> Path:
    """Return `.steps/` (trees, results, progress), which ignores itself in git."""
    folder = root / ".steps"
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n")
    return folder


def empty_folder(folder: Path) -> Path:
    """Make `folder`; StepError when there is something in it already."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StepError(
            tr(
                f"{folder} 不是空文件夹：换一个，或先移走（start --again 会做）",
                f"{folder} is not an empty folder: choose another, or move it (start --again does)",
            )
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StepError(f"{folder}: {error.strerror}") from None
    return folder


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write path -> content below `folder`."""
    for path, content in files.items():
        target = folder / path
        os.makedirs(target.parent, exist_ok=True)
        target.write_bytes(content)
