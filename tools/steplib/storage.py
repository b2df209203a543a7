"""Rule 1: every version of a file is stored once, where it belongs."""

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from .errors import StepError
from .manifest import Book, Step
from .source import decode, parse
from .tree import Version, tree, versions

BESIDE_VERSIONS = {"step.toml", "README.md", "expected.zh.txt", "expected.en.txt"}


def storage_problems(book: Book) -> Iterator[str]:
    """Yield what is missing, unreachable, misplaced or stored twice."""
    for number, step in enumerate(book, book.steps[0].number):
        if step.number != number:
            yield f"there is no chapter {number:02} before {step.label}"
            break
    yield from _unwritten(book)
    yield from _unreachable(book)
    for step in book:
        yield from _manifest_problems(book, step)
    for path in sorted({path for step in book for path in step.writes}):
        yield from _version_problems(book, path)


def _unwritten(book: Book) -> Iterator[str]:
    """The last step is `minisgl/`: nothing else may lie there."""
    last = tree(book, book.last.number)
    for path in _package_paths(book.root):
        if path not in last:
            older = versions(book, path)
            if older and not older[-1].location.exists():
                yield (
                    f"{path} was removed by a later chapter: keep the old version with "
                    f"`python3 tools/steps.py keep`, which is `{_command('mv', book, older[-1])}`"
                )
            else:
                yield f"{path} is in no step's tree at the end: no step.toml writes it"


def _unreachable(book: Book) -> Iterator[str]:
    stored = {version.location for step in book for version in written_by(book, step)}
    for path in sorted((book.root / "steps").rglob("*")):
        inner = path.relative_to(book.root / "steps").parts
        beside = len(inner) == 2 and inner[1] in BESIDE_VERSIONS
        if path.is_file() and not _ignored(path) and path not in stored and not beside:
            yield f"steps/{'/'.join(inner)} belongs to no step: remove it"


def written_by(book: Book, step: Step) -> list[Version]:
    """Return the versions that `step` wrote."""
    return [one for path in step.writes for one in versions(book, path) if one.step is step]


def _manifest_problems(book: Book, step: Step) -> Iterator[str]:
    previous = book.before(step)
    before = tree(book, previous.number) if previous else {}
    for path in step.removes:
        if path not in before:
            yield f"{step.label} removes {path}, which is not in the tree before it"
    for path in (step.main, *step.tests):
        if not (book.root / path).is_file():
            yield f"{step.name}/step.toml names {path}, which does not exist"
    for entry in step.retires:
        for test in (entry.test, entry.by):
            if not _test_exists(book, test):
                yield f"{step.name}/step.toml: `retires` names {test}, which does not exist"


def _test_exists(book: Book, test: str) -> bool:
    path, *names = test.split("::")
    if path not in {test for step in book for test in step.tests}:
        return False
    body: list[ast.stmt] = parse(decode((book.root / path).read_bytes(), path), path).body
    for name in names:
        found = [node for node in body if getattr(node, "name", None) == name]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def _version_problems(book: Book, path: str) -> Iterator[str]:
    before: bytes | None = None
    for version in versions(book, path):
        try:
            content = version.read()
        except StepError:
            where = version.location.relative_to(book.root).as_posix()
            later = version.location != book.root / path
            how = f": `python3 tools/steps.py keep` or `{_command('git', book, version)}`"
            yield f"{version.step.label}: {where} is missing{how if later else ''}"
            continue
        if content == before:
            yield f"{version.step.label} writes {path}, but it is equal to the version before it"
        before = content


def _command(kind: str, book: Book, version: Version) -> str:
    """The shell command that puts an old version where it belongs."""
    target = version.location.relative_to(book.root).as_posix()
    if kind == "mv":
        get = f"git mv {version.path} {target}"
    else:
        get = f"git show HEAD:{version.path} > {target}"
    return f"mkdir -p {PurePosixPath(target).parent} && {get}"


def _ignored(path: Path) -> bool:
    """Say whether a file is a by-product that belongs to no step."""
    return "__pycache__" in path.parts or path.name.startswith(".")


def _package_paths(root: Path) -> list[str]:
    found = (path for path in (root / "minisgl").rglob("*") if path.is_file())
    return sorted(path.relative_to(root).as_posix() for path in found if not _ignored(path))
