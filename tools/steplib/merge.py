"""What needs git: three-way merges, and versions as they were committed."""

import subprocess
import tempfile
from pathlib import Path

from .errors import StepError

NAMES = ("mine", "base", "other")


def merge(mine: bytes, base: bytes, other: bytes, *options: str) -> tuple[bytes, int]:
    """Merge the change from `base` to `other` into `mine`; return the text and its conflicts.

    Conflicts are marked in the text as git does; `--theirs` among `options` takes `other` instead.
    """
    with tempfile.TemporaryDirectory(prefix="steps-") as folder:
        for name, content in zip(NAMES, (mine, base, other), strict=True):
            (Path(folder) / name).write_bytes(content)
        ended = _git(Path(folder), "merge-file", "-p", *options, *NAMES)
    if not 0 <= ended.returncode < 128:
        raise StepError(f"git merge-file: {ended.stderr.decode(errors='replace').strip()}")
    return ended.stdout, ended.returncode


def committed(root: Path, path: str) -> bytes | None:
    """Return the content of `path` in the last commit, None when it has none."""
    ended = _git(root, "show", f"HEAD:{path}")
    return ended.stdout if ended.returncode == 0 else None


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)
    except OSError:
        raise StepError("this needs git, which is not installed") from None
