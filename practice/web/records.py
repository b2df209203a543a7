"""The store as a server holds it, and the sign by which others know that the server lives.

A process id would lie: after a restart of the machine, or of a container, another process has it.
So each server locks a file of its own, and the kernel lets go of the lock however it dies.
"""

from __future__ import annotations

import fcntl
import re
import threading
import uuid
from pathlib import Path

from practice.judgelib.store import Progress
from practice.judgelib.text import Text
from tools.store import Row, StoreError

NAME = re.compile(r"[0-9a-f]{32}")


class Lease:
    """A locked file in `folder` for as long as this server lives; `name` is the server's."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.name = uuid.uuid4().hex
        self._path = _path(folder, self.name)
        unlocked = self._path.with_suffix(".new")
        self._file = unlocked.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        unlocked.rename(self._path)  # nobody sees it before it is locked

    def close(self) -> None:
        """Give it up; safe to call twice."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def is_alive(folder: Path, name: object) -> bool:
    """Whether the server of this name still holds its lease; the file of a dead one is removed."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return False
    path = _path(folder, name)
    try:
        with path.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
            return False
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.lock"


class Records:
    """The progress, opened when it is first needed and tried again as long as it cannot be.

    A store that cannot be opened must not keep the page from working: whoever needs it gets
    StoreError and goes on without.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._lease: Lease | None = None
        self._closed = False

    @property
    def progress(self) -> Progress:
        """The progress; raises StoreError."""
        return self._open()[0]

    @property
    def owner(self) -> str:
        """The name under which this server's submissions wait; raises StoreError."""
        return self._open()[1].name

    @property
    def notice(self) -> Text | None:
        """What was wrong with the store, or that it cannot be used; None when all is well."""
        try:
            said = self.progress.store.notice
            return Text(said, said) if said else None
        except StoreError as error:
            return Text(error.zh, error.en)

    def adopt(self) -> list[Row]:
        """Take over the submissions that dead servers left behind, oldest first."""
        progress, lease = self._open()
        folder = _folder(progress)
        return progress.adopt(lease.name, lambda name: is_alive(folder, name))

    def close(self) -> None:
        """Close the store and give up the lease; safe to call twice."""
        with self._lock:
            self._closed = True
            if self._progress:
                self._progress.store.close()
            if self._lease:
                self._lease.close()

    def _open(self) -> tuple[Progress, Lease]:
        with self._lock:
            if self._closed:
                raise StoreError("服务器正在关闭", "the server is shutting down")
            if self._progress is None:
                self._progress = Progress()
            if self._lease is None:
                try:
                    self._lease = Lease(_folder(self._progress))
                except OSError as error:
                    why = error.strerror or str(error)
                    where = _folder(self._progress)
                    raise StoreError(
                        f"无法写入 {where}：{why}", f"cannot write {where}: {why}"
                    ) from None
            return self._progress, self._lease


def _folder(progress: Progress) -> Path:
    return progress.store.path.parent / "servers"
