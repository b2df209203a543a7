"""The reader's workspace: what lies in the folder in which a chapter is written."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tools.lang import tr

from .build import assemble, empty_folder, package_files, write_files
from .errors import StepError
from .manifest import Book, Step
from .merge import merge
from .source import decode, parse
from .stubs import changed_functions, stub_source, with_bodies

STUB = re.compile(r'raise NotImplementedError\("chapter (\d+): ([\w.]+)"\)')
MARK = re.compile(r"# chapter (\d+): change ([\w.]+)")


@dataclass(frozen=True)
class Todo:
    """A function that is still to be written, or (`change`) one that is there and to be changed."""

    path: str
    line: int
    name: str
    chapter: int
    change: bool


@dataclass(frozen=True)
class Workspace:
    """Path -> content; what is to be done in them; the chapters whose code came from the book."""

    files: dict[str, bytes]
    todos: list[Todo]
    filled: list[int] = field(default_factory=list)


def workspace(book: Book, number: int, mine: Path | None = None) -> Workspace:
    """Return the folder in which a reader writes chapter `number`.

    The package is that of the step before, or the reader's own in `mine`. What the chapter adds is
    there as stubs; what it changes has the body that it had, under a mark.
    """
    step = book[number]
    old, new = _before(book, step), package_files(book, number)
    own, filled = _own_package(book, step, mine) if mine else (old, [])
    package = {path: text for path, text in own.items() if path not in step.removes}
    for path in step.writes:
        stub = _stub(old.get(path), new[path], step, path)
        if path in own and path.endswith(".py"):
            if mine and path in old:
                stub = _with_mine(own[path], old[path], new[path], stub, path)
            texts = decode(stub, path), decode(own[path], path)
            stub = with_bodies(*texts, f"chapter {number}", path).encode()
        package[path] = stub
    files = assemble(book, number, package=package, tests=step.tests)
    if not step.writes:  # a chapter without package code has its main as what the reader writes
        files[step.main] = _stub(None, files[step.main], step, step.main)
    return Workspace(files, todos(files), filled)


def _before(book: Book, step: Step) -> dict[str, bytes]:
    previous = book.before(step)
    return package_files(book, previous.number) if previous else {}


def _stub(old: bytes | None, new: bytes, step: Step, path: str) -> bytes:
    if not path.endswith(".py"):
        return new
    before = None if old is None else decode(old, path)
    return stub_source(before, decode(new, path), f"chapter {step.number}", path).encode()


def _with_mine(mine: bytes, old: bytes, new: bytes, stub: bytes, path: str) -> bytes:
    """Carry the chapter's stubs into the reader's file; where that fails, the stubs alone."""
    merged = _merged(mine, old, stub, path)
    wanted = {name for name, _ in changed_functions(decode(old, path), decode(new, path), path)}
    found = STUB.findall(decode(merged, path))
    return merged if wanted <= {name for _, name in found} else stub


def _merged(mine: bytes, base: bytes, other: bytes, path: str) -> bytes:
    """Bring the change from `base` to `other` into `mine`; `other` where that is no Python."""
    merged, _ = merge(mine, base, other, "--theirs")
    try:
        parse(decode(merged, path), path)
    except StepError:
        return other
    return merged


def _own_package(book: Book, step: Step, mine: Path) -> tuple[dict[str, bytes], list[int]]:
    """Return the reader's package as it stands before `step`, and the chapters it lacked."""
    old = _before(book, step)
    if old and not (mine / "minisgl").is_dir():
        raise StepError(
            tr(f"{mine} 里没有 minisgl/ 文件夹", f"{mine} has no folder minisgl/ to go on from")
        )
    own = {path: text for path, text in read_folder(mine).items() if path.startswith("minisgl/")}
    there = [other.number for other in book if (mine / other.main).is_file()]
    reached = there[-1] if there else step.number - 1
    if reached >= step.number:
        raise StepError(
            tr(
                f"{mine} 是第 {reached} 章的文件夹：--from 要用更早一章的",
                f"{mine} is a folder of chapter {reached}: --from goes on from an earlier one",
            )
        )
    filled = [other.number for other in book if reached < other.number < step.number]
    base = package_files(book, reached)
    for path in sorted({*base, *old}) if filled else ():
        if path not in old:
            own.pop(path, None)
        elif old[path] != base.get(path):
            both = path in own and path in base and path.endswith(".py")
            own[path] = _merged(own[path], base[path], old[path], path) if both else old[path]
    return old | own, filled


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return path -> content of what the reader may have written: package, examples, tests."""
    found = {}
    for part in ("minisgl", "examples", "tests"):
        for path in sorted((folder / part).rglob("*")):
            # An editor's lock is a link `.#box.py` to nowhere.
            source = path.suffix == ".py" and not path.name.startswith(".")
            if (path.is_file() or source) and "__pycache__" not in path.parts:
                with one_line(path):
                    found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


@contextmanager
def one_line(place: Path) -> Iterator[None]:
    """Turn what the reader's folder has in the way (a folder, a link in a circle) into one line."""
    try:
        yield
    except OSError as error:
        raise StepError(f"{error.filename or place}: {error.strerror or error}") from None


def todos(files: Mapping[str, bytes]) -> list[Todo]:
    """Return the functions that are still stubs in `files`, or still have their mark."""
    return [
        Todo(path, line, found[2], int(found[1]), found.re is MARK)
        for path, content in sorted(files.items())
        if path.startswith(("minisgl/", "examples/")) and path.endswith(".py")
        for line, text in enumerate(content.decode("utf-8", "replace").split("\n"), 1)
        if (found := STUB.search(text) or MARK.search(text))
    ]


def _for_editors(root: Path) -> dict[str, bytes]:
    """Opened as a folder of its own, a workspace has its own package, its tests and a Python."""
    settings = {
        "python.defaultInterpreterPath": str(root / ".venv" / "bin" / "python"),
        "python.testing.pytestEnabled": True,
        "python.testing.pytestArgs": ["tests"],
    }
    return {".vscode/settings.json": json.dumps(settings, indent=2).encode()}


def start(
    book: Book, number: int, folder: Path, mine: Path | None = None, *, again: bool = False
) -> Workspace:
    """Write the workspace of chapter `number` into `folder`, which is new or empty.

    With `again` a folder that is there is first put aside under another name.
    """
    found = workspace(book, number, mine)
    with one_line(folder):
        if again and folder.is_dir():
            kept = folder.with_name(f"{folder.name}.{time.strftime('%Y%m%d-%H%M%S')}")
            folder.rename(kept)
            print(tr(f"旧文件夹移到了 {kept}", f"the old folder is now {kept}"))
        write_files(found.files | _for_editors(book.root), empty_folder(folder))
    return found
