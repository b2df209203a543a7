"""Results of runs, kept under a hash of all that they depend on."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .build import state_folder

FORMAT = "1"


class Cache:
    """One small file per result in `.steps/results/`, so that several runs may share the folder."""

    def __init__(self, root: Path, *, forced: bool = False) -> None:
        """`forced`: find nothing, so that everything runs again and is stored anew."""
        self._folder = state_folder(root) / "results"
        self._folder.mkdir(exist_ok=True)
        self._forced = forced

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


def parts_of(files: Mapping[str, bytes], paths: Iterable[str]) -> list[str | bytes]:
    """Return name and content of each of these files, for `key_of`."""
    return [part for path in sorted(paths) for part in (path, files[path])]


def key_of(kind: str, *parts: str | bytes) -> str:
    """Return the key of a result: a hash of its kind and of everything it depends on."""
    total = hashlib.sha256(FORMAT.encode())
    for part in (kind, *parts):
        content = part.encode() if isinstance(part, str) else part
        total.update(f"{len(content)}\0".encode() + content)
    return f"{kind}-{total.hexdigest()[:32]}"
