"""What the reader has done: one SQLite file for the steps tool, the judge and the web page.

It lies in `$MINISGL_HOME`, else `$XDG_DATA_HOME/minisgl`, else `~/.local/share/minisgl`. Several
processes may use it at once. Every row but a draft is also a line of `practice.jsonl`, which is
only ever appended to: what the store has lost comes from these lines, and a store that cannot be
read, or is another program's, is moved aside and made again from them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.lang import is_a_guess, tr

Row = dict[str, Any]

# Table -> (columns of its key, other columns).
TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "steps": (("step",), ("at",)),
    "submissions": (
        ("id",),
        ("problem", "source", "state", "code", "verdict", "seed", "pid", "at", "session", "owner"),
    ),
    "drafts": (("problem",), ("source", "at")),
    "hints": (("problem", "number"), ("at",)),
    "solutions": (("problem",), ("at", "spoiled")),
    "told": (("what",), ("at",)),  # what is said once and not again
}
# Without these the sources, which are most of the file, are read for every question.
INDEXES = {
    "submissions_by_state": "submissions (state, at, problem, code)",
    "submissions_by_problem": "submissions (problem, at)",
}
NOT_IN_JOURNAL = ("drafts", "told")
BUSY_SECONDS = 10.0
LATEST_BYTES = 4 << 20  # of the journal: its last line, a source and a verdict, is in these
CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class StoreError(Exception):
    """What was done could not be recorded or read; one line, `str()` in the reader's language."""

    def __init__(self, zh: str, en: str) -> None:
        super().__init__(zh, en)
        self.zh, self.en = zh, en

    def __str__(self) -> str:
        return tr(self.zh, self.en)


def store_path() -> Path:
    """Where the store lies for this user."""
    home = os.environ.get("MINISGL_HOME")
    try:
        if home:
            return Path(home).expanduser() / "practice.db"
        data = Path(os.environ.get("XDG_DATA_HOME", ""))
        if not data.is_absolute():  # the XDG specification: such a path is to be ignored
            data = Path.home() / ".local" / "share"
        return data / "minisgl" / "practice.db"
    except RuntimeError as error:  # such as ~ and a name that nobody has
        raise StoreError(
            f"无法记录进度：找不到用户目录（MINISGL_HOME={home or ''}）：把它设成一个可写的文件夹",
            f"cannot record progress: no home folder (MINISGL_HOME={home or ''}): "
            "set it to a folder that can be written to",
        ) from error


class Store:
    """The file, opened or made; a context manager. Threads may share it: they take turns.

    `notice` says in one line what had to be put right on opening; empty when nothing had to.
    Every method raises StoreError when the disk is full or the place cannot be written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = store_path() if path is None else path
        self.notice = ""
        self._turn = threading.RLock()
        self._holds_lock = False
        with self._errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._locked():
                self._open_or_heal()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._turn:
            self._db.close()

    def put(self, table: str, row: Row) -> None:
        """Insert a row, or change the given columns of the row with the same key."""
        with self._errors():
            self._retried(lambda: self._upsert(table, row))
            if table not in NOT_IN_JOURNAL:
                self._append({"table": table, "row": row})

    def rows(self, query: str, *values: Any) -> list[Row]:
        """What a SELECT finds, each row as column -> value."""
        with self._errors():
            found = self._retried(lambda: self._db.execute(query, values).fetchall())
        return [dict(row) for row in found]

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """No other process opens the store, or is in here, meanwhile; raises StoreError."""
        with self._errors(), self._locked():
            yield

    def _retried(self, work: Any) -> Any:
        """A file that turns out to be broken while it is used is healed as on opening."""
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if not _is_corrupt(error):
                raise
            self._db.close()
            with self._locked():
                self._open_or_heal()
            return work()

    def _open_or_heal(self) -> None:
        try:
            self._db = self._open()
            if self._lacks_the_latest():
                count, journal = self._replay(), self._journal
                self.notice = tr(
                    f"记录文件缺了一部分；从日志 {journal} 恢复了 {count} 条记录",
                    f"the store lacked a part; {count} records restored from {journal}",
                )
        except sqlite3.DatabaseError as error:
            if not _is_corrupt(error):
                raise
            moved = self._move_aside()
            self._db = self._open()
            count = self._replay()
            self.notice = tr(
                f"记录文件已损坏，或者是别的程序的，移到了 {moved}；从日志恢复了 {count} 条记录",
                f"the store was damaged, or another program's, and is now {moved}; "
                f"{count} records restored",
            )

    def _lacks_the_latest(self) -> bool:
        """Whether the last line of the journal is not in the store.

        A line is written after its row. So the store has been lost, or the part of it that SQLite
        keeps in a file of its own, the write-ahead log, until there is more.
        """
        with contextlib.suppress(FileNotFoundError), self._journal.open("rb") as journal:
            journal.seek(max(0, journal.seek(0, os.SEEK_END) - LATEST_BYTES))
            for line in reversed(journal.read().splitlines()):
                if entry := _entry(line):
                    return not self._has(*entry)
        return False

    def _has(self, table: str, row: Row) -> bool:
        same = " AND ".join(f"{column} IS ?" for column in row)
        query = f"SELECT 1 FROM {table} WHERE {same}"
        return self._db.execute(query, list(row.values())).fetchone() is not None

    def _open(self) -> sqlite3.Connection:
        for path in (self.path, self._journal):  # the reader's work is nobody else's to read
            if path == self.path or path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
                with contextlib.suppress(PermissionError):  # it is a group's
                    path.chmod(0o600)
        db = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            db.row_factory = sqlite3.Row
            _check_tables(db)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            for table, (key, others) in TABLES.items():
                columns = f"{', '.join([*key, *others])}, PRIMARY KEY ({', '.join(key)})"
                db.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
                # A store of an earlier version has fewer columns.
                there = {row["name"] for row in db.execute(f"PRAGMA table_info({table})")}
                for column in (*key, *others):
                    if column not in there:
                        db.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
            for name, place in INDEXES.items():
                db.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {place}")
            wrong = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if wrong != "ok":
                raise _corrupt(wrong)
        except BaseException:
            db.close()
            raise
        return db

    def _move_aside(self) -> Path:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        aside = self.path.with_name(f"{self.path.name}.damaged-{stamp}")
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                self.path.with_name(self.path.name + end).rename(f"{aside}{end}")
        return aside

    def _upsert(self, table: str, row: Row) -> None:
        key, others = TABLES[table]
        columns = [column for column in (*key, *others) if column in row]
        changes = ", ".join(f"{c} = excluded.{c}" for c in columns if c not in key)
        marks = ", ".join("?" * len(columns))
        self._db.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) "
            f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}",
            [row[column] for column in columns],
        )

    @property
    def _journal(self) -> Path:
        return self.path.with_suffix(".jsonl")

    def _append(self, entry: Row) -> None:
        # A line cut off by a crash must not spoil the next one, so each starts a line of its own.
        data = b"\n" + json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        number = os.open(self._journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            while data:  # a disk that is nearly full takes a part, and says so only then
                data = data[os.write(number, data) :]
        finally:
            os.close(number)

    def _replay(self) -> int:
        count = 0
        with contextlib.suppress(FileNotFoundError):
            for line in self._journal.read_bytes().splitlines():
                if entry := _entry(line):
                    self._upsert(*entry)
                    count += 1
        return count

    def _disk_is_full(self) -> bool:
        with contextlib.suppress(OSError):
            return shutil.disk_usage(self.path.parent).free < 1 << 16
        return False

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Only one process at a time opens or heals."""
        if self._holds_lock:
            yield
            return
        lock_path = self.path.with_suffix(".lock")
        with open(lock_path, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._holds_lock = True
            try:
                yield
            finally:
                self._holds_lock = False

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with self._turn:
                yield
        except (sqlite3.Error, OSError) as error:
            why = getattr(error, "strerror", None) or str(error)
            if isinstance(error, FileExistsError):
                why = os.strerror(errno.ENOTDIR)  # what should be its folder is a file
            elif isinstance(error, sqlite3.Error) and self._disk_is_full():
                why = os.strerror(errno.ENOSPC)  # SQLite says "disk I/O error"
            why = f"({self.path}): {why}"
            raise StoreError(f"无法记录进度 {why}", f"cannot record progress {why}") from error


def tell_language() -> None:
    """On a terminal, once: how to get English, where nothing says which language is wanted."""
    if is_a_guess() and sys.stdout.isatty():
        with contextlib.suppress(StoreError), Store() as store:
            if not store.rows("SELECT * FROM told WHERE what = 'language'"):
                print("现在显示中文。For English: export MINISGL_LANG=en", file=sys.stderr)
                store.put("told", {"what": "language", "at": time.time()})


def _entry(line: bytes) -> tuple[str, Row] | None:
    """Table and row of a line of the journal.

    A line that another version wrote, or nobody, costs no more than itself: None.
    """
    try:
        entry = json.loads(line)
        key, others = TABLES[entry["table"]]
        row = {name: entry["row"][name] for name in key}
        row |= {name: entry["row"][name] for name in others if name in entry["row"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    fits = len(row) > len(key) and all(map(_is_plain, row.values()))
    return (entry["table"], row) if fits else None


def _is_plain(value: Any) -> bool:
    """Whether SQLite can hold it."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace") == value.encode("utf-8", "surrogatepass")
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return value is None or isinstance(value, float)


def _check_tables(db: sqlite3.Connection) -> None:
    """Raise what a damaged file raises where the tables cannot be this store's."""
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE "
    there = {row["name"] for row in db.execute(query + "'sqlite_%'")}
    if there and not there & TABLES.keys():
        raise _corrupt("another program's")
    for table in there & TABLES.keys():
        columns = db.execute(f"PRAGMA table_info({table})")
        if {row["name"] for row in columns if row["pk"]} != set(TABLES[table][0]):
            raise _corrupt(f"another table {table}")


def _corrupt(what: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(what)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _is_corrupt(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in CORRUPT
