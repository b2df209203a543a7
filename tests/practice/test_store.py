"""The one store: two processes, a killed judge, a damaged file, a full disk: nothing is lost."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from practice.judgelib.store import Progress, Standing
from practice.judgelib.verdict import Verdict
from tools.store import Store, StoreError, store_path, tell_language

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MINISGL_LANG", "en")


def python(text: str) -> subprocess.Popen[str]:
    code = f"import os, time\nfrom practice.judgelib.store import Progress\n{text}"
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, text=True, stdout=subprocess.PIPE
    )


def test_the_place_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store_path() == tmp_path / "home" / "practice.db"
    monkeypatch.delenv("MINISGL_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert store_path() == tmp_path / "data" / "minisgl" / "practice.db"
    monkeypatch.setenv("XDG_DATA_HOME", "data")  # relative: to be ignored
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store_path() == tmp_path / ".local" / "share" / "minisgl" / "practice.db"


def test_how_to_get_english_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("MINISGL_LANG", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    for locale, terminal, expected in (
        ("C.UTF-8", False, 0),
        ("zh_CN.UTF-8", True, 0),
        ("C.UTF-8", True, 1),
        ("", True, 0),  # it was said
    ):
        monkeypatch.setenv("LANG", locale)
        monkeypatch.setattr(sys.stdout, "isatty", lambda terminal=terminal: terminal)
        tell_language()
        assert capsys.readouterr().err.count("MINISGL_LANG=en") == expected


def test_a_submission_is_there_before_its_verdict() -> None:
    with Progress() as progress:
        id = progress.begin("ch01-x", b"def f(): \xff", 2**48 - 1)
        (row,) = progress.history("ch01-x")
        assert (row["state"], row["code"], row["source"]) == ("running", None, "def f(): \ufffd")
        assert progress.interrupted() == []  # this process is still at it
        progress.finish(id, Verdict("AC", cases=3))
        (row,) = progress.history("ch01-x")
        assert (row["state"], row["code"], row["seed"]) == ("done", "AC", 2**48 - 1)


def test_standings_count_what_counts() -> None:
    with Progress() as progress:
        for code in ("WA", "IE", "SK", "CE", "AC", "WA"):
            progress.finish(progress.begin("p", b"x", 1), Verdict(code))
        progress.take_hint("p", 1)
        progress.take_hint("p", 1)
        progress.show_solution("q", spoiled=True)
        progress.show_solution("q", spoiled=False)
        assert progress.standings() == {
            "p": Standing(accepted=True, failures=2, hints=1),
            "q": Standing(spoiled=True),
        }


def test_a_clock_that_is_set_back_turns_no_history_round(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 2e9
    monkeypatch.setattr(time, "time", lambda: now)
    with Progress() as progress:
        for code in ("WA", "AC", "WA"):
            progress.finish(progress.begin("p", code.encode(), 1), Verdict(code))
            now -= 3600
        assert [row["source"] for row in progress.history("p")] == ["WA", "AC", "WA"]
        assert progress.standing("p") == Standing(accepted=True, failures=1)
        for source in (b"first", b"second"):
            progress.enqueue("q", source, 1, "session", "dead")
            now -= 3600
        adopted = progress.adopt("server", lambda _: False)
        assert [row["source"] for row in adopted] == ["first", "second"]


def test_two_processes_write_at_once_and_nothing_is_lost() -> None:
    work = """
for n in range(40):
    with Progress() as progress:
        progress.take_hint(f"{os.getpid()}-{n}", 1)
"""
    both = [python(work) for _ in range(2)]
    assert [one.wait(120) for one in both] == [0, 0]
    with Progress() as progress:
        assert len(progress.standings()) == 80
        assert progress.store.notice == ""


def test_kill_9_in_the_middle_keeps_the_source_and_is_told() -> None:
    child = python("""
progress = Progress()
progress.begin("ch01-x", b"my work", 5)
print("running", flush=True)
time.sleep(60)
""")
    assert child.stdout is not None and child.stdout.readline() == "running\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with Progress() as progress:
        (row,) = progress.interrupted()
        assert (row["problem"], row["source"]) == ("ch01-x", "my work")
        assert progress.interrupted() == []  # told once
        assert progress.history("ch01-x")[0]["state"] == "interrupted"
        assert progress.standing("ch01-x") == Standing()  # and not counted


def fill() -> None:
    with Progress() as progress:
        for number in range(200):
            id = progress.begin(f"p{number}", b"x" * 500, number)
            progress.finish(id, Verdict("AC"))
        progress.store.put("steps", {"step": 4, "at": "now"})


@pytest.mark.parametrize("damage", ["garbage", "header", "middle", "cut"])
def test_a_damaged_store_is_moved_aside_and_told_and_nothing_is_lost(damage: str) -> None:
    fill()
    path = store_path()
    with Store() as store:
        store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    if damage == "garbage":
        data = bytearray(os.urandom(5000))
    elif damage == "header":
        data[:100] = bytes(100)
    elif damage == "middle":
        data[4096 : len(data) // 2] = os.urandom(len(data) // 2 - 4096)
    else:
        del data[len(data) // 2 :]
    path.write_bytes(data)
    with Progress() as progress:
        notice = progress.store.notice
        assert (
            "was damaged, or another program's, and is now" in notice
            and "401 records restored" in notice
        )
        assert len(progress.standings()) == 200 and progress.steps() == {4}
        assert progress.history("p7")[0]["source"] == "x" * 500
    assert len(list(path.parent.glob("practice.db.damaged-*"))) >= 1
    with Progress() as progress:
        assert progress.store.notice == ""


def damage(progress: Progress) -> None:
    """Overwrite all but the first page of the file that `progress` has open."""
    path = store_path()
    progress.store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    progress.store._db.execute("PRAGMA cache_size = 0")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


def test_damage_while_the_store_is_open_is_healed_too() -> None:
    fill()
    with Progress() as progress:
        damage(progress)
        assert len(progress.standings()) == 200
        assert "was damaged" in progress.store.notice


def test_a_torn_line_of_the_journal_costs_only_itself() -> None:
    fill()
    path = store_path()
    with path.with_suffix(".jsonl").open("ab") as journal:
        journal.write(b'\n{"table": "hints", "row": {"probl')
    with Progress() as progress:
        progress.take_hint("p1", 2)
    path.write_bytes(b"not a database")
    for end in ("-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    with Progress() as progress:
        assert progress.standing("p1") == Standing(accepted=True, hints=1)


@pytest.mark.parametrize("lost", [("-wal",), ("-wal", "-shm"), ("", "-wal", "-shm")])
def test_a_lost_file_of_the_store_loses_no_history(lost: tuple[str, ...]) -> None:
    fill()  # all of it in the file itself
    path = store_path()
    with Progress() as progress:
        progress.finish(progress.begin("new", b"x", 1), Verdict("AC"))
        # A copy while it is open, as a backup would make it or a power cut leave it.
        files = {end: Path(f"{path}{end}").read_bytes() for end in ("", "-wal")}
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    for end in files.keys() - set(lost):
        Path(f"{path}{end}").write_bytes(files[end])
    with Progress() as progress:
        assert "the store lacked a part; 403 records restored from" in progress.store.notice
        assert progress.standing("new").accepted and len(progress.standings()) == 201
    with Progress() as progress:
        assert progress.store.notice == ""


def test_a_line_of_the_journal_that_no_store_can_hold_is_passed_over() -> None:
    fill()
    journal = store_path().with_suffix(".jsonl")
    for value in ("[1]", "1e400", "9" * 30, '"\\ud800"', '{"a": 1}'):
        line = f'{{"table": "hints", "row": {{"problem": "p", "number": 1, "at": {value}}}}}\n'
        with journal.open("a") as file:
            file.write(line)
    with Progress() as progress:
        assert progress.standing("p") == Standing() or progress.standing("p").hints == 1


def test_the_reader_s_files_are_his_alone() -> None:
    fill()
    path = store_path()
    for end in (".db", ".jsonl"):
        path.with_suffix(end).chmod(0o644)  # of an earlier version
    with Progress() as progress:
        progress.take_hint("p", 1)
        names = {one.name for one in path.parent.iterdir()}
        assert names >= {"practice.db", "practice.db-wal", "practice.jsonl", "practice.lock"}
        for one in path.parent.iterdir():
            assert one.stat().st_mode & 0o777 == 0o600, one.name


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE cookies (name, value)",
        "CREATE TABLE submissions (a, b)",
        "CREATE TABLE submissions (id PRIMARY KEY, hints); CREATE TABLE hints (problem)",
        "CREATE VIEW submissions AS SELECT 1 AS id",
        "CREATE TABLE drafts (id INTEGER PRIMARY KEY, problem)",
    ],
)
def test_another_program_s_file_is_set_aside_and_told(statement: str) -> None:
    fill()
    path = store_path()
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.executescript(statement)
    with Progress() as progress:
        assert "another program's, and is now" in progress.store.notice
        assert len(progress.standings()) == 200
        progress.take_hint("p", 1)
    (aside,) = path.parent.glob("practice.db.damaged-*")
    with contextlib.closing(sqlite3.connect(aside)) as other:
        assert other.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] >= 1


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    with Store() as store:
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError) as caught:
            for number in range(100):
                store.put("drafts", {"problem": str(number), "source": "x" * 5000})
    words = str(caught.value)
    assert words.startswith("cannot record progress (") and words.endswith("disk is full")
    with Store() as store:  # the store itself is whole
        assert store.notice == ""


def test_a_place_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(StoreError, match=r"cannot record progress .*Not a directory"):
        Store()


def test_a_locked_store_is_waited_for() -> None:
    with Store() as store:
        store.put("hints", {"problem": "a", "number": 1, "at": 0})
        other = sqlite3.connect(store_path(), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        work = "with Progress() as progress:\n    print('now', flush=True)\n"
        child = python(f"{work}    progress.take_hint('b', 1)\n")
        assert child.stdout is not None and child.stdout.readline() == "now\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)
        other.execute("COMMIT")
        other.close()
        assert child.wait(60) == 0
        assert len(store.rows("SELECT * FROM hints")) == 2


def test_a_store_of_an_earlier_version_gets_the_new_columns_and_keeps_its_rows() -> None:
    path = store_path()
    path.parent.mkdir(parents=True)
    old = sqlite3.connect(path)
    columns = "id, problem, source, state, code, verdict, seed, pid, at, PRIMARY KEY (id)"
    old.execute(f"CREATE TABLE submissions ({columns})")
    row = ("1", "ch01-x", "my work", "done", "AC", "{}", 7, 1, 5.0)
    old.execute("INSERT INTO submissions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    old.commit()
    old.close()
    for _ in range(2):
        with Progress() as progress:
            assert progress.store.notice == "" and progress.standing("ch01-x").accepted
            (found,) = progress.history("ch01-x")
            assert found["source"] == "my work" and found["owner"] is found["session"] is None
    with Progress() as progress:
        id = progress.enqueue("ch01-x", b"new", 9, "session", "server")
        assert progress.submission(id)["owner"] == "server"  # type: ignore[index]


def test_threads_share_a_store() -> None:
    with Progress() as progress:

        def work(name: int) -> None:
            for number in range(20):
                progress.finish(progress.begin(f"{name}-{number}", b"x", 1), Verdict("AC"))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(one.accepted for one in progress.standings().values()) == 160


def test_damage_is_healed_also_by_who_holds_the_store_for_itself() -> None:
    fill()
    with Progress() as progress:
        damage(progress)
        with progress.store.exclusive():
            assert len(progress.standings()) == 200
