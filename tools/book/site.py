"""Build the site: both languages, strict, without the network."""

from __future__ import annotations

import os
import subprocess
import sys
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
    """Build into `folder` (`site/`); return a line that says what there is. BookError otherwise."""
    started = time.perf_counter()
    target = folder or root / SITE
    # The theme would print that MkDocs 2 will end it; this project pins MkDocs 1.
    variables = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(target)]
    ended = subprocess.run(
        command, cwd=root, env=variables, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        said = (ended.stdout + ended.stderr).strip()
        raise BookError(f"书没有编成：\n{said}", f"the book does not build:\n{said}")
    pages = len(list(target.rglob("index.html")))
    what, seconds = f"✓ {target.name}/", f"{time.perf_counter() - started:.1f}"
    return tr(f"{what}：{pages} 页，{seconds} 秒", f"{what}: {pages} pages, {seconds} s")


def is_current(root: Path) -> bool:
    """Whether `site/` is there and no file that it is made from is newer."""
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
        for path in place.rglob("*") if place.is_dir() else ():
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
