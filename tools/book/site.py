"""Build the site: both languages, strict, without the network."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tools.book.errors import BookError
from tools.lang import tr

SITE = "site"
# Everything that a page can be made from.
INPUTS = (
    *("mkdocs.yml", "pyproject.toml", "docs", "steps", "minisgl", "examples", "tests", "bench"),
    *("notebooks", "practice/problems", "practice/judgelib", "tools"),
)


def build_site(root: Path, folder: Path | None = None) -> str:
    """Build into `folder` (`site/`); return a line that says what there is.

    What was there stays until all of the new is; BookError when the book does not build.
    """
    started = time.perf_counter()
    target = folder or root / SITE
    with tempfile.TemporaryDirectory(prefix=".book-", dir=target.parent) as drafts:
        draft = Path(drafts) / SITE  # a name that git ignores
        _build(root, draft)
        pages = len(list(draft.rglob("index.html")))
        _exchange(draft, target)
    what, seconds = f"✓ {target.name}/", f"{time.perf_counter() - started:.1f}"
    return tr(f"{what}：{pages} 页，{seconds} 秒", f"{what}: {pages} pages, {seconds} s")


def _build(root: Path, folder: Path) -> None:
    # The theme would print that MkDocs 2 will end it; this project pins MkDocs 1.
    variables = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    ended = subprocess.run(
        command, cwd=root, env=variables, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        lines = (ended.stdout + ended.stderr).strip().split("\n")
        faults = [line for line in lines if line.startswith(("WARNING", "ERROR", "  - "))]
        said = "\n".join(faults or lines)
        raise BookError(f"书没有编成：\n{said}", f"the book does not build:\n{said}")


def _exchange(new: Path, target: Path) -> None:
    """Put a folder in the place of another, one process at a time."""
    lock = os.open(target.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            target.rename(new.with_name("old"))
        new.rename(target)
    finally:
        os.close(lock)


def is_current(root: Path) -> bool:
    """Whether `site/` is there and nothing that it is made from is newer."""
    index = root / SITE / "index.html"
    if not index.is_file():
        return False
    made = index.stat().st_mtime
    return all(path.stat().st_mtime <= made for path in _inputs(root))


def _inputs(root: Path) -> Iterator[Path]:
    for name in INPUTS:
        place = root / name
        if place.is_file():
            yield place
        # A folder is newer when something in it is gone.
        for path in place.rglob("*") if place.is_dir() else ():
            if "__pycache__" not in path.parts and path.exists():
                yield path
