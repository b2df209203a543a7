"""Results of runs, kept under a hash of all that they depend on."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .build import state_folder
from .run import PLUGIN, python, versions_of

FORMAT = "1"


class Cache:
    """One small file per result in `.steps/results/`, so that several runs may share the folder."""

    def __init__(self, root: Path, *, forced: bool = False) -> None:
        """`forced`: find nothing, so that everything runs again and is stored anew."""
        self._folder = state_folder(root) / "results"
        self._folder.mkdir(exist_ok=True)
        self._forced = forced
        plugin = [path.read_bytes() for path in sorted(PLUGIN.glob("*.py"))]
        self._setting: list[str | bytes] = [versions_of(python(root)), *plugin]

    def key(self, kind: str, files: Mapping[str, bytes], paths: Iterable[str], *more: str) -> str:
        """Return the key of a result: a hash of its kind, of these files, and of all else it is of.

        The libraries are part of that, and what tells how a test ends.
        """
        total = hashlib.sha256(FORMAT.encode())
        named = [part for path in sorted(paths) for part in (path, files[path])]
        for part in (kind, *more, *self._setting, *named):
            content = part.encode() if isinstance(part, str) else part
            total.update(f"{len(content)}\0".encode() + content)
        return f"{kind}-{total.hexdigest()[:32]}"

    def get(self, key: str) -> Any:
        """Return the stored result (a JSON value), None when there is none."""
        if self._forced:
            return None
        try:
            return json.loads((self._folder / key).read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def put(self, key: str, result: Any) -> None:
        """Store a JSON value."""
        draft = self._folder / f"{key}.{os.getpid()}"
        draft.write_text(json.dumps(result, ensure_ascii=False), "utf-8")
        draft.replace(self._folder / key)
