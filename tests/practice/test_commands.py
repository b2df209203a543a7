"""The command line: what a reader does, and one clear line for all that can go wrong."""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import FILES, GOOD, TOML, reader_file, write_problem

from practice.judgelib import doctor
from practice.judgelib.commands import main
from practice.judgelib.sandbox import levels, paths
from practice.judgelib.static import MAX_BYTES
from practice.judgelib.store import Progress

ROOT = Path(__file__).resolve().parents[2]
BAD = GOOD.replace("+=", "-=")

Judge = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MINISGL_LANG", "en")
    monkeypatch.chdir(tmp_path)
    write_problem(tmp_path)


@pytest.fixture
def judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Judge:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(tmp_path, "", arguments)
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def write(root: Path, text: str) -> Path:
    reader_file(root).parent.mkdir(parents=True, exist_ok=True)
    reader_file(root).write_text(text)
    return reader_file(root)


def test_a_bare_call_tells_a_new_reader_what_to_do_in_five_lines(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, out, err = judge()
    assert status == 0 and err == "" and len(out.splitlines()) == 5
    assert "0/1 accepted" in out and "judge.py start ch01-total" in out
    assert "judge.py submit ch01-total" in out
    monkeypatch.setenv("MINISGL_LANG", "zh")
    status, out, err = judge()
    assert len(out.splitlines()) == 5 and "下一题：ch01-total 求和" in out


def test_the_way_of_a_reader(judge: Judge, tmp_path: Path) -> None:
    status, out, _ = judge("start", "ch01-total")
    assert status == 0 and "write here: workspace/practice/ch01-total.py" in out
    status, out, _ = judge("run", "ch01-total")
    assert status == 1 and "NotImplementedError: ch01-total: total" in out
    for count in range(3):
        write(tmp_path, BAD)
        status, out, _ = judge("submit", "ch01-total")
        assert status == 1 and "WA wrong answer" in out
        assert ("would a hint help?" in out) == (count == 2)
    assert "hint 1: one\n(2 more)" in judge("hint", "ch01-total")[1]
    assert "hint 2: two\n(1 more)" in judge("hint", "ch01-total")[1]
    status, _, err = judge("solution", "ch01-total")
    assert status == 2 and "shown after an AC; to see it now:" in err
    write(tmp_path, GOOD)
    assert "submit: python3 practice/judge.py submit ch01-total" in judge("run", "ch01-total")[1]
    status, out, _ = judge("submit", "ch01-total")
    assert status == 0 and "AC accepted  ch01-total  7 cases" in out
    assert "result = result + number" in judge("solution", "ch01-total")[1]
    assert judge("list")[1].startswith("✓   1 ch01-total")
    out = judge("status")[1]
    assert "1 of 1 problems accepted" in out and "3 failed, 2 hints" in out
    assert "All of them are done." in judge()[1]


def test_a_solution_seen_early_is_recorded(judge: Judge) -> None:
    assert judge("solution", "ch01-total", "--spoil")[0] == 0
    assert "solution seen" in judge("status")[1]


def test_json_is_one_document(judge: Judge, tmp_path: Path) -> None:
    file = tmp_path / "answer.py"
    file.write_text(BAD)
    status, out, _ = judge("submit", "ch01-total", str(file), "--json")
    found = json.loads(out)
    assert status == 1 and found["code"] == "WA" and found["problem"] == "ch01-total"
    assert found["first_wrong_index"] == "" and found["expected"] == "16" and found["got"] == "4"
    file.write_text(GOOD)
    status, out, _ = judge("submit", "ch01-total", str(file), "--json")
    assert status == 0 and json.loads(out)["code"] == "AC"


def test_a_failure_can_be_repeated_by_its_seed(judge: Judge, tmp_path: Path) -> None:
    write(tmp_path, GOOD.replace("start += n", "start += abs(n)"))
    _, out, _ = judge("submit", "ch01-total")
    assert "to repeat: python3 practice/judge.py run ch01-total --seed " in out
    seed = out.split("--seed ")[1].split()[0]
    assert "group: edge  negative" in judge("run", "ch01-total", "--seed", seed)[1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"x" * (MAX_BYTES + 10), "too large"),
        (b"def total(x): pass\n", "line 1: total takes (numbers, start), here (x)"),
    ],
)
def test_a_bad_file_is_a_ce_with_a_clear_line(
    judge: Judge, tmp_path: Path, content: bytes, words: str
) -> None:
    write(tmp_path, "").write_bytes(content)
    status, out, err = judge("submit", "ch01-total")
    assert status == 1 and err == ""
    first, second, *more = out.splitlines()
    assert first.startswith("✗ CE cannot be compiled") and second.startswith("  reason: ")
    assert words in second and not more


def test_bad_input_is_one_line_and_status_2(judge: Judge, tmp_path: Path) -> None:
    for arguments, words in (
        (("submit", "ch01-totl"), "there is no problem 'ch01-totl'; the nearest is ch01-total"),
        (("submit", "ch01-total"), "run python3 practice/judge.py start ch01-total first"),
        (("watch", "ch01-total"), "run python3 practice/judge.py start ch01-total first"),
        (("submit", "ch01-total", "nowhere.py"), "nowhere.py: No such file or directory"),
        (("run", "ch01-total", "."), "Is a directory"),
    ):
        status, out, err = judge(*arguments)
        assert status == 2 and out == "" and words in err
        assert len(err.splitlines()) == 1 and err.startswith("judge.py: ")


def test_a_level_that_is_not_here_is_one_line(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, GOOD)
    monkeypatch.setattr(levels, "obstacle", lambda level: levels.NO_LANDLOCK)
    said = (2, "", "judge.py: level 2 is not to be had here: the kernel offers no Landlock\n")
    assert judge("run", "ch01-total", "--level", "2") == said
    monkeypatch.setenv("MINISGL_LANG", "zh")
    assert (
        "这里用不了沙箱 2 级：内核不提供 Landlock" in judge("run", "ch01-total", "--level", "2")[2]
    )


def test_start_never_writes_over_the_reader_s_work(judge: Judge, tmp_path: Path) -> None:
    write(tmp_path, "my work")
    status, _, err = judge("start", "ch01-total")
    assert (
        status == 2
        and "--again starts over" in err
        and reader_file(tmp_path).read_text() == "my work"
    )
    assert judge("start", "ch01-total", "--again")[0] == 0
    kept = [path.read_text() for path in reader_file(tmp_path).parent.glob("ch01-total.2*.py")]
    assert kept == ["my work"] and "NotImplementedError" in reader_file(tmp_path).read_text()


def child(root: Path, *arguments: str, **options: object) -> subprocess.Popen[str]:
    code = "import sys; from pathlib import Path; from practice.judgelib.commands import main; "
    code += f"sys.exit(main(Path({str(root)!r}), '', sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-u", "-c", code, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,  # type: ignore[call-overload]
    )


def test_a_full_disk_costs_the_record_and_not_the_verdict(judge: Judge, tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    assert judge("submit", "ch01-total")[0] == 0
    size = max(path.stat().st_size for path in (tmp_path / "home").iterdir())

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    process = child(tmp_path, "submit", "ch01-total", preexec_fn=full)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "AC accepted" in out, err
    told = [line for line in (out + err).splitlines() if "cannot record progress" in line]
    assert told and "Traceback" not in err


def test_a_full_disk_leaves_no_half_a_starter(tmp_path: Path) -> None:
    write_problem(tmp_path, **{"starter.py": FILES["starter.py"] + "# " + "x" * 60_000 + "\n"})

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    process = child(tmp_path, "start", "ch01-total", preexec_fn=full)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "File too large" in err and len(err.splitlines()) == 1
    assert list(reader_file(tmp_path).parent.iterdir()) == []


def test_two_terminals_at_once_lose_nothing(judge: Judge, tmp_path: Path) -> None:
    for name, text in (("good", GOOD), ("bad", BAD)):
        (tmp_path / f"{name}.py").write_text(text)
    both = [child(tmp_path, "submit", "ch01-total", f"{name}.py") for name in ("good", "bad")]
    for process in both:
        process.communicate(timeout=60)
    assert [process.returncode for process in both] == [0, 1]
    with Progress() as progress:
        assert sorted(row["code"] for row in progress.history("ch01-total")) == ["AC", "WA"]


def test_kill_9_in_the_middle_of_a_submission(judge: Judge, tmp_path: Path) -> None:
    write(tmp_path, "def total(numbers, start):\n    while True: pass\n")
    process = child(tmp_path, "submit", "ch01-total")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if (tmp_path / "home" / "practice.db").exists():
            with Progress() as progress:
                if progress.history("ch01-total"):
                    break
        time.sleep(0.05)
    process.kill()
    process.communicate()
    status, _, err = judge()
    assert status == 0 and "judging a submission for ch01-total was interrupted" in err
    assert judge()[2] == ""
    with Progress() as progress:
        (row,) = progress.history("ch01-total")
        assert row["state"] == "interrupted" and "while True" in row["source"]


def test_a_damaged_store_is_told_and_the_command_goes_on(judge: Judge, tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    judge("submit", "ch01-total")
    path = tmp_path / "home" / "practice.db"
    path.write_bytes(b"x" * 9000)
    status, out, err = judge("status")
    assert status == 0 and "1 of 1 problems accepted" in out
    assert "was damaged, or another program's, and is now" in err and len(err.splitlines()) == 1


def read_until(process: subprocess.Popen[str], sign: str, seconds: float) -> str:
    """What the process prints up to a line with `sign`; fails after so many seconds."""
    assert process.stdout is not None
    shown = ""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if select.select([process.stdout], [], [], 0.02)[0]:
            shown += os.read(process.stdout.fileno(), 65536).decode()
            if sign in shown:
                return shown
    raise AssertionError(f"no {sign!r} in {shown!r}")


def test_watch_answers_a_save_at_once_and_records_the_ac(judge: Judge, tmp_path: Path) -> None:
    write(tmp_path, BAD)
    process = child(tmp_path, "watch", "ch01-total")
    try:
        read_until(process, "WA", 30)
        took = []
        for number in range(5):
            write(tmp_path, BAD + f"# {number}\n")
            saved = time.monotonic()
            read_until(process, "WA", 10)
            took.append(time.monotonic() - saved)
        assert min(took) <= 0.3, took
        reader_file(tmp_path).unlink()
        read_until(process, "is gone", 10)
        write(tmp_path, GOOD)
        read_until(process, "the reference solution", 10)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()
    with Progress() as progress:
        assert [row["code"] for row in progress.history("ch01-total")] == ["AC"]


def test_doctor_proves_the_level(judge: Judge) -> None:
    status, out, _ = judge("doctor")
    assert status == 0 and "attacks on level" in out and "NOT blocked" not in out


def test_doctor_says_when_root_s_box_keeps_its_uid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for readable, words in ((False, "code keeps uid 0, without any capability"), (True, "")):
        monkeypatch.setattr(paths, "reachable_by_all", lambda read, answer=readable: answer)
        doctor._say_if_still_root(2)
        said = capsys.readouterr().out
        assert words in said and bool(said) == (not readable)
        doctor._say_if_still_root(3)
        assert capsys.readouterr().out == ""


def test_audit_prints_its_table_and_what_is_wrong(judge: Judge, tmp_path: Path) -> None:
    status, out, _ = judge("audit", "--quick", "--write")
    assert status == 0 and "ch01-total/statement.en.md: written" in out
    assert "1 problems, automatic mutants killed 2/2 = 100.0%" in out
    write_problem(tmp_path, **{"starter.py": GOOD, "problem.toml": TOML})
    status, out, _ = judge("audit", "--quick", "--write", "ch01-total")
    assert status == 1 and "✗ ch01-total: the starter gives AC" in out
