"""Odd terminals, places and files: one clear line each, no traceback, and nothing is lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from fakes import GOOD, reader_file, write_problem

from practice.judgelib import watch
from practice.judgelib.catalogue import load_catalogue
from practice.judgelib.text import visible
from tools.store import Store

ROOT = Path(__file__).resolve().parents[2]
CALL = "import sys; from pathlib import Path; from practice.judgelib.commands import main; "


@pytest.fixture(autouse=True)
def _problem(tmp_path: Path) -> None:
    write_problem(tmp_path)
    (tmp_path / "good.py").write_text(GOOD)


def judge(
    root: Path, *arguments: str | bytes, **options: object
) -> subprocess.CompletedProcess[bytes]:
    """`judge.py` in a process of its own, as from a terminal; `env` is added to."""
    extra: dict[str, str] = options.pop("env", {})  # type: ignore[assignment]
    settings = {"MINISGL_HOME": str(root / "home"), "MINISGL_LANG": "en", "PYTHONPATH": str(ROOT)}
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": root} | options
    code = f"{CALL}sys.exit(main(Path({str(root)!r}), '', sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | settings | extra,
        timeout=60,
        check=False,
        **given,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gb2312"])
def test_a_terminal_without_the_characters_costs_no_verdict(tmp_path: Path, encoding: str) -> None:
    env = {"PYTHONIOENCODING": encoding, "MINISGL_LANG": "zh"}
    done = judge(tmp_path, "submit", "ch01-total", "good.py", env=env)
    assert done.returncode == 0 and b"AC" in done.stdout and done.stderr == b""


def test_escapes_reach_no_terminal(tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\u200b\r"
    bodies = {
        "prints": f"print({evil!r})\ndef total(numbers, start):\n    return 1\n",
        "raises": f"def total(numbers, start):\n    raise ValueError({evil!r})\n",
        "is called so": f"def total(n, s): pass\ndef total(numbers, start):\n"
        f"    raise type({evil!r}, (Exception,), {{}})\n",
        "quotes": f"def total(numbers, start):\n    return 1 / 0 #{evil[:-1]}\n",
        "is no Python": f"def total(numbers, start):\n    return '{evil[:-1]}' oops $\n",
        "answers": f"def total(numbers, start):\n    return {{{evil!r}: 1}}\n",
    }
    for what, text in bodies.items():
        (tmp_path / "evil.py").write_text(text)
        more = ["--json"] if what in ("prints", "raises") else []
        done = judge(tmp_path, "run", "ch01-total", "evil.py", *more)
        shown = (done.stdout + done.stderr).decode()
        assert done.returncode == 1 and visible(shown) == shown, what
    name = b"\x1b[2J\xff.py"
    done = judge(tmp_path, "submit", "ch01-total", name)
    assert done.returncode == 2 and done.stderr.startswith(b"judge.py: \\x1b[2J\\udcff.py: No such")


def test_visible_keeps_what_can_be_read() -> None:
    assert visible("é 中文\u3000✓ \u00a0\n\tx") == "é 中文\u3000✓ \u00a0\n\tx"
    assert visible("a\x00\x1b\x7f\x9b\u202e\u2028\ufeff\r") == (
        "a\\x00\\x1b\\x7f\\x9b\\u202e\\u2028\\ufeff\\r"
    )


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = judge(tmp_path, "list", stdout=full)
    assert (done.returncode, done.stderr) == (2, b"judge.py: No space left on device\n")
    read, write = os.pipe()
    os.close(read)
    done = judge(tmp_path, "list", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_a_named_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = judge(tmp_path, "submit", "ch01-total", "pipe")
    assert (done.returncode, done.stderr) == (2, b"judge.py: pipe is a named pipe, not a file\n")
    done = judge(tmp_path, "submit", "ch01-total", "/dev/stdin", input=GOOD.encode())
    assert done.returncode == 0
    reader_file(tmp_path).parent.mkdir(parents=True)
    os.mkfifo(reader_file(tmp_path))
    for command in ("run", "watch"):
        done = judge(tmp_path, command, "ch01-total")
        assert done.returncode == 2 and b"is a named pipe" in done.stderr


@pytest.mark.parametrize("home", ["good.py/x", "~no-such-user/x"])
def test_no_place_for_the_record_costs_the_record_only(tmp_path: Path, home: str) -> None:
    env = {"MINISGL_HOME": home if home.startswith("~") else str(tmp_path / home)}
    for arguments, words in (
        (("submit", "ch01-total", "good.py"), b"AC accepted"),
        (("hint", "ch01-total"), b"hint 1: one"),
        (("list",), b"ch01-total"),
        ((), b"start ch01-total"),
    ):
        done = judge(tmp_path, *arguments, env=env)
        assert done.returncode == 0 and words in done.stdout
        assert done.stderr.startswith(b"judge.py: cannot record progress")
        assert len(done.stderr.splitlines()) == 1


def test_a_deleted_folder_to_stand_in(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    start = f"import os; os.rmdir({str(gone)!r}); {CALL}"
    start += f"sys.exit(main(Path({str(tmp_path)!r}), '', ['start', 'ch01-total']))"
    env = os.environ | {"PYTHONPATH": str(ROOT), "MINISGL_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", start], cwd=gone, env=env, capture_output=True, timeout=60
    )
    assert done.returncode == 0 and done.stderr == b"" and reader_file(tmp_path).exists()


def test_beginning_anew_twice_in_a_second_keeps_both(tmp_path: Path) -> None:
    reader_file(tmp_path).parent.mkdir(parents=True)
    reader_file(tmp_path).write_text("my work")
    for _ in range(2):
        assert judge(tmp_path, "start", "ch01-total", "--again").returncode == 0
    kept = [path.read_text() for path in reader_file(tmp_path).parent.glob("ch01-total.2*.py")]
    assert len(kept) == 2 and "my work" in kept


def test_watch_says_that_the_file_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINISGL_LANG", "en")
    path = reader_file(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("def total(numbers, start):\n    return 1\n")

    def becomes_a_folder() -> None:
        path.unlink()
        path.mkdir()

    def becomes_a_file_again() -> None:
        path.rmdir()
        path.write_text("def total(x): pass")

    # Each time that nothing is new and the watch would wait, something happens.
    events = iter((becomes_a_folder, becomes_a_file_again))
    clock = SimpleNamespace(sleep=lambda _: next(events)(), strftime=str, perf_counter=float)
    monkeypatch.setattr(watch, "time", clock)
    watch.watch(load_catalogue(tmp_path)["ch01-total"], None, False, turns=3)
    shown = capsys.readouterr()
    said = [shown.out.find(w) for w in ("WA wrong answer", "Is a directory", "CE cannot be")]
    assert said == sorted(said) and said[0] > 0 and shown.err == ""


@pytest.mark.parametrize("loss", ["unlink", "empty"])
def test_a_store_that_is_gone_or_empty_comes_back(tmp_path: Path, loss: str) -> None:
    assert judge(tmp_path, "submit", "ch01-total", "good.py").returncode == 0
    for path in (tmp_path / "home").glob("practice.db*"):
        path.unlink()
    if loss == "empty":
        (tmp_path / "home" / "practice.db").touch()
    done = judge(tmp_path, "status")
    assert b"1 of 1 problems accepted" in done.stdout
    assert b"the store lacked a part; 2 records restored" in done.stderr
    assert judge(tmp_path, "status").stderr == b""


def test_odd_lines_of_the_journal_cost_no_others(tmp_path: Path) -> None:
    journal = tmp_path / "practice.jsonl"
    journal.write_text(
        '{"table": "hints", "row": {"problem": "p", "number": 1, "at": 1}}\n'
        '{"table": "steps", "row": {"step": [1], "at": 2}}\n'
        '{"table": "later", "row": {"a": 1}}\n'
        '{"table": "hints", "row": {}}\n{"table": "hints", "row": [1]}\n[]\n7\n'
        '{"table": "hints", "row": {"problem": "p", "number": 3}}\n'
        '{"table": "steps", "row": {"step": 99999999999999999999999, "at": 2}}\n'
        + "[" * 100_000
        + '\n{"table": "steps", "row": {"step": 2, "at": 2, "new": 3}}\n{"table": "st'
    )
    with Store(tmp_path / "practice.db") as store:
        assert store.rows("SELECT step FROM steps") == [{"step": 2}]
        assert store.rows("SELECT number FROM hints") == [{"number": 1}]
        assert "2 records restored" in store.notice or "2 条记录" in store.notice
