"""Carry a change of a file through the chapters: keep the old version, merge a fix forward."""

from collections.abc import Iterator

from .errors import StepError
from .manifest import Book
from .merge import committed, merge
from .tree import Version, versions


def keep(book: Book) -> Iterator[str]:
    """Store the old version of every file that a later chapter rewrites or removes.

    It is taken from `minisgl/` where a removed file still lies there, else from the last commit.
    Yields one line per file.
    """
    for path in sorted({path for step in book for path in step.writes}):
        gone = [version for version in versions(book, path) if not version.location.exists()]
        gone = [version for version in gone if version.location != book.root / path]
        if len(gone) > 1:
            labels = " and ".join(version.step.label for version in gone)
            raise StepError(f"{path}: the versions of {labels} are missing: the commit has one")
        for version in gone:
            yield _keep(book, version)


def _keep(book: Book, version: Version) -> str:
    current = book.root / version.path
    place = version.location.relative_to(book.root)
    removed = versions(book, version.path)[-1] == version
    content = current.read_bytes() if removed and current.exists() else None
    if content is None:
        content = committed(book.root, version.path)
    if content is None:
        raise StepError(f"{version.path}: not in the last commit, so {place} cannot be made")
    version.location.parent.mkdir(parents=True, exist_ok=True)
    version.location.write_bytes(content)
    if removed:
        current.unlink(missing_ok=True)
    return f"{version.step.label}: {place}"


def propagate(book: Book, number: int, path: str) -> Iterator[tuple[Version, str | None]]:
    """Merge the uncommitted change of step `number`'s version of `path` into the later versions.

    Yields each later version with None, or with its text when it has conflicts; that text is in
    the file then, and the rest waits until they are resolved and `propagate` goes on from there.
    """
    chain = [one for one in versions(book, path) if one.step.number >= book[number].number]
    if not chain or chain[0].step.number != number:
        raise StepError(f"step {number} does not write {path}")
    base = committed(book.root, chain[0].location.relative_to(book.root).as_posix())
    fixed = chain[0].read()
    if base is None or base == fixed:
        raise StepError(f"{chain[0].location}: no change since the last commit to carry forward")
    for version in chain[1:]:
        mine = version.read()
        merged, conflicts = merge(mine, base, fixed, "-L", version.step.label, "-L", "before")
        version.location.write_bytes(merged)
        yield version, merged.decode("utf-8", "replace") if conflicts else None
        if conflicts:
            return
        base, fixed = mine, merged
