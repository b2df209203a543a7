"""The real server killed, restarted, doubled and interrupted: no submission is lost or doubled."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from serving import BAD, ENDLESS, GOOD, ROOT, SLOW, TOTAL, Child, wait_until, write_problem

from practice.judgelib.commands import main
from practice.judgelib.sandbox import levels
from practice.judgelib.store import Progress
from practice.web.records import Lease, Records, is_alive


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MINISGL_LANG", "en")
    write_problem(tmp_path)


def times_recorded(root: Path) -> Counter[str]:
    """Submission -> how often a verdict on it was recorded."""
    lines = (root / "home" / "practice.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line)["row"] for line in lines if line]
    return Counter(row["id"] for row in rows if row.get("state") == "done")


def codes() -> dict[str, str]:
    """Submission -> code of all that are judged."""
    with Progress() as progress:
        return {row["id"]: row["code"] for row in progress.history("ch01-total") if row["code"]}


@pytest.mark.parametrize("after", [0, 3, 12])
def test_kill_9_in_the_middle_loses_nothing_and_records_nothing_twice(
    tmp_path: Path, after: int
) -> None:
    with Child(tmp_path) as first:
        reader = first.reader()
        jobs = [reader.post("submit", SLOW) for _ in range(30)]
        wait_until(lambda: len(codes()) >= after)
        first.kill()
    assert after <= len(codes()) < 30
    with Child(tmp_path) as second:
        reader = second.reader()
        assert [reader.verdict(job)["verdict"]["code"] for job in jobs] == ["AC"] * 30
        assert len(reader.get(f"{TOTAL}/history")) == 30
    assert codes() == dict.fromkeys(jobs, "AC")
    assert times_recorded(tmp_path) == dict.fromkeys(jobs, 1)


def test_a_second_server_leaves_a_living_one_s_queue_and_takes_a_dead_one_s(
    tmp_path: Path,
) -> None:
    with Child(tmp_path) as first, Child(tmp_path) as second:
        one, other = first.reader(), second.reader()
        jobs = [one.post("submit", SLOW) for _ in range(20)]
        jobs += [other.post("submit", SLOW) for _ in range(20)]
        for job in jobs:
            reader = one if jobs.index(job) < 20 else other
            assert reader.verdict(job)["verdict"]["code"] == "AC"
        assert times_recorded(tmp_path) == dict.fromkeys(jobs, 1)
        left = [one.post("submit", SLOW) for _ in range(20)]
        wait_until(lambda: len(codes()) > 40)
        first.kill()
        assert len(codes()) < 60
        # The second one was running all the time, and takes them up when it is idle.
        assert {other.verdict(job)["verdict"]["code"] for job in left} == {"AC"}
    assert times_recorded(tmp_path) == dict.fromkeys(jobs + left, 1)


def test_a_command_line_beside_a_server_does_no_harm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answer.py"
    file.write_text(BAD)
    with Child(tmp_path) as server:
        reader = server.reader()
        endless = reader.post("submit", ENDLESS)
        jobs = [reader.post("submit", GOOD) for _ in range(5)]
        assert main(tmp_path, "", ["status"]) == 0
        assert main(tmp_path, "", ["submit", "ch01-total", str(file)]) == 1
        assert "interrupted" not in capsys.readouterr().err
        server.kill()
    assert main(tmp_path, "", ["status"]) == 0
    assert capsys.readouterr().err == ""
    with Child(tmp_path) as server:
        reader = server.reader()
        assert reader.verdict(endless)["verdict"]["code"] == "TLE"
        assert {reader.verdict(job)["verdict"]["code"] for job in jobs} == {"AC"}
    assert set(times_recorded(tmp_path).values()) == {1} and len(codes()) == 7


def test_a_run_of_before_the_restart_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with Child(tmp_path) as server:
        job = server.reader().post("run", GOOD)
    with Child(tmp_path) as server:
        answer = server.reader().ask("GET", f"/api/jobs/{job}/events")
        assert answer.status == 404 and "run it again" in answer.error


def test_drafts_hints_and_the_seen_solution_survive_a_restart(tmp_path: Path) -> None:
    with Child(tmp_path) as server:
        reader = server.reader()
        assert reader.ask("PUT", f"{TOTAL}/draft", {"source": "# 我的"}).status == 204
        assert reader.ask("POST", f"{TOTAL}/hint").json["taken"] == 1
        assert reader.ask("POST", f"{TOTAL}/solution", {"spoil": True}).status == 200
        server.kill()
    with Child(tmp_path) as server:
        reader = server.reader()
        found = reader.get(TOTAL)
        assert found["draft"]["source"] == "# 我的" and found["hints"]["taken"] == 1
        assert found["solution"] == {"available": True}
        assert reader.ask("DELETE", f"{TOTAL}/draft").status == 204
        assert reader.get(TOTAL)["draft"] is None


def below(pid: int) -> set[int]:
    """All processes below one."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if int(text.rpartition(")")[2].split()[1]) == pid:
            child = int(path.parent.name)
            found |= {child} | below(child)
    return found


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes by /proc")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_a_server_is_the_end_of_its_boxes_at_once(
    tmp_path: Path, end: signal.Signals
) -> None:
    with Child(tmp_path) as server:
        reader = server.reader()
        job = reader.post("submit", ENDLESS)
        wait_until(lambda: reader.get(f"/api/jobs/{job}")["state"] == "judging")
        wait_until(lambda: below(server.process.pid))
        with reader.open("GET", f"/api/jobs/{job}/events") as stream:
            assert stream.readline() == b"event: judging\n"
            boxes = below(server.process.pid)
            started = time.monotonic()
            server.process.send_signal(end)
            _, err = server.process.communicate(timeout=10)
            assert time.monotonic() - started < 3
            wait_until(lambda: all(map(gone, boxes)), 2)
            assert boxes and "Traceback" not in err
        assert server.process.returncode == (0 if end == signal.SIGINT else -end)
    with Child(tmp_path) as server:
        assert server.reader().verdict(job)["verdict"]["code"] == "TLE"


@pytest.mark.skipif(levels.best() < 3, reason="only a box of level 3 has a process that could stay")
def test_a_kill_9_while_a_box_is_being_made_leaves_none_half_made() -> None:
    code = (
        "import time; from practice.judgelib.box import Box; from practice.judgelib.sandbox import "
    )
    code += "levels\nlevels.obstacle(3); print('now', flush=True)\n"
    code += "box = Box(level=3, torch=False); print('done', flush=True); time.sleep(60)"
    before = set(Path("/proc").glob("[0-9]*"))
    for number in range(40):
        child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
        assert child.stdout is not None and child.stdout.readline() == b"now\n"
        time.sleep(number * 0.0005)
        child.kill()
        child.communicate()

    def left() -> list[Path]:
        """New first processes of boxes whose judge is gone."""
        new = set(Path("/proc").glob("[0-9]*")) - before
        return [path for path in new if is_orphan_of_a_box(path)]

    wait_until(lambda: not left(), 5)


def is_orphan_of_a_box(path: Path) -> bool:
    try:
        parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        return parent == 1 and b"inbox/start.py" in (path / "cmdline").read_bytes()
    except OSError:
        return False


def test_a_place_that_cannot_be_had_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    port = str(taken.getsockname()[1])
    with taken:
        for arguments, words in (
            (("--port", port), f"port {port} cannot be used (Address already in use)"),
            (("--host", "0.0.0.0"), "only a loopback address"),
            (("--host", "judge.example.org"), "only a loopback address"),
            (("--port", "99999"), "port 99999 cannot be used"),
        ):
            assert main(tmp_path, "", ["serve", *arguments]) == 2
            out, err = capsys.readouterr()
            assert out == "" and words in err and len(err.splitlines()) == 1


def test_the_other_commands_do_not_load_the_web(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from practice.judgelib.commands import main; "
    code += f"main(Path({str(tmp_path)!r}), '', ['list']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert not loaded & {"fastapi", "starlette", "uvicorn", "pydantic", "markdown_it", "torch"}


def test_without_the_packages_of_the_page_one_line_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("practice.web.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(tmp_path, "", ["serve", "--port", "0"]) == 2
    assert "tools/dev.py demo" in capsys.readouterr().err


def test_a_lease_lasts_as_long_as_its_server(tmp_path: Path) -> None:
    lease = Lease(tmp_path / "servers")
    assert is_alive(tmp_path / "servers", lease.name)
    lease.close()
    assert not is_alive(tmp_path / "servers", lease.name)
    code = (
        "import os, sys, time; from pathlib import Path; from practice.web.records import Lease\n"
    )
    code += "lease = Lease(Path(sys.argv[1])); print(lease.name, flush=True); time.sleep(60)"
    folder = str(tmp_path / "servers")
    child = subprocess.Popen(
        [sys.executable, "-c", code, folder], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child.stdout:
        name = child.stdout.readline().strip()
    assert is_alive(tmp_path / "servers", name)
    child.kill()
    child.wait()
    assert not is_alive(tmp_path / "servers", name)
    assert os.listdir(folder) == []
    for odd in (None, "", "../../etc/passwd", "x" * 32):
        assert not is_alive(tmp_path / "servers", odd)


def test_of_two_servers_that_start_at_once_one_gets_each_submission() -> None:
    dead = Records()
    for _ in range(10):
        dead.progress.enqueue("p", b"x", 1, "s", dead.owner)
    dead.close()
    both = [Records(), Records()]
    found = [{row["id"] for row in records.adopt()} for records in both]
    assert len(found[0] | found[1]) == 10 and not found[0] & found[1]
    assert [records.adopt() for records in both] == [[], []]
    for records in both:
        records.close()
