"""From the post to the verdict over HTTP: all are judged, in turn, whatever they print."""

import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from serving import BAD, ENDLESS, GOOD, ROOT, SLOW, TOTAL, Live, wait_until, write_problem

from practice.web import desk as desk_module
from practice.web import work


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MINISGL_LANG", "en")
    write_problem(tmp_path)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with Live(tmp_path) as server:
        yield server


def done_lines(home: Path) -> list[str]:
    """The ids of all verdicts in the journal, one for every time one was recorded."""
    lines = (home / "practice.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line)["row"] for line in lines if line]
    return [row["id"] for row in rows if row.get("state") == "done"]


def test_a_submission_is_judged_recorded_and_shown(live: Live) -> None:
    reader = live.reader()
    job = reader.post("submit", BAD)
    *before, (name, data) = reader.events(job)
    assert {event for event, _ in before} <= {"queued", "judging"} and name == "verdict"
    assert data["verdict"]["code"] == "WA" and data["verdict"]["group"] == "sample"
    assert (data["problem"], data["kind"], data["notes"]) == ("ch01-total", "submit", [])
    assert reader.events(job) == [("verdict", data)]  # whoever comes again gets it again
    assert reader.get(f"/api/jobs/{job}") == {"state": "verdict"} | data
    (row,) = reader.get(f"{TOTAL}/history")
    assert (row["id"], row["code"], row["source"]) == (job, "WA", BAD)
    assert row["verdict"] == data["verdict"]
    assert reader.get("/api/problems")["chapters"][0]["problems"][0]["state"] == "tried"
    notes = reader.verdict(reader.post("submit", GOOD))["notes"]
    assert [note["en"] for note in notes] == ["the reference solution is open now"]
    assert reader.get("/api/problems")["done"] == 1


def test_a_run_is_of_the_samples_and_leaves_no_record(live: Live) -> None:
    reader = live.reader()
    data = reader.verdict(reader.post("run", GOOD))
    assert data["kind"] == "run"
    assert (data["verdict"]["code"], data["verdict"]["cases"]) == ("AC", 1)
    assert reader.get(f"{TOTAL}/history") == []


def test_after_three_failures_a_hint_is_offered(live: Live) -> None:
    reader = live.reader()
    told = [reader.verdict(reader.post("submit", BAD))["notes"] for _ in range(3)]
    assert told[:2] == [[], []] and told[2][0]["en"] == "would a hint help?"


def test_200_submissions_at_once_from_20_sessions_are_all_judged(
    live: Live, tmp_path: Path
) -> None:
    def work(number: int) -> list[str]:
        reader = live.reader()
        reader.get("/api/status")
        jobs = [reader.post("submit", GOOD if n % 2 else BAD) for n in range(10)]
        return [job + reader.verdict(job)["verdict"]["code"] for job in jobs]

    with ThreadPoolExecutor(20) as pool:
        found = [one for jobs in pool.map(work, range(20)) for one in jobs]
    assert [one[32:] for one in found] == ["WA", "AC"] * 100
    assert sorted(done_lines(tmp_path / "home")) == sorted(one[:32] for one in found)
    assert live.desk.count() == {"queue": 0, "running": 0}
    assert live.desk._listeners == {}


def test_nobody_waits_behind_another_s_hundred(live: Live) -> None:
    greedy, other = live.reader(), live.reader()
    for reader in (greedy, other):
        reader.get("/api/status")
    for _ in range(100):
        greedy.post("submit", SLOW)
    before = live.desk.count()["queue"]
    job = other.post("submit", GOOD)
    place = other.get(f"/api/jobs/{job}")
    assert place.get("position", 0) <= 1
    assert other.verdict(job)["verdict"]["code"] == "AC"
    assert before - live.desk.count()["queue"] <= 4
    assert greedy.ask("GET", "/api/status").json["queue"] > 60


def test_a_full_queue_is_a_429_in_both_languages(tmp_path: Path) -> None:
    with Live(tmp_path, queue=6, queue_each=2) as live:
        first, second = live.reader(), live.reader()
        for reader in (first, second):
            reader.get("/api/status")
        running = first.post("run", ENDLESS)
        wait_until(lambda: live.desk.live(running) == ("judging", {}))
        for _ in range(2):
            first.post("run", GOOD)
        refused = first.ask("POST", f"{TOTAL}/submit", {"source": GOOD})
        assert refused.status == 429 and "too many of yours" in refused.error
        second.post("run", GOOD)
        third = live.reader().ask("POST", f"{TOTAL}/run", {"source": GOOD})
        assert third.status == 429 and "too many of yours" in third.error  # the same address
        live.desk._queue._whole = (3, 0)
        refused = second.ask("POST", f"{TOTAL}/run", {"source": GOOD})
        assert refused.status == 429 and "the queue is full" in refused.error
        assert first.get(f"{TOTAL}/history") == []  # what was refused is no row


def test_who_comes_without_a_cookie_is_not_a_new_reader_each_time(tmp_path: Path) -> None:
    with Live(tmp_path, queue_each=2) as live:
        running = live.reader().post("run", ENDLESS)
        wait_until(lambda: live.desk.live(running) == ("judging", {}))
        body = {"source": GOOD}
        answers = [live.reader().ask("POST", f"{TOTAL}/run", body).status for _ in range(4)]
        assert answers == [202, 202, 429, 429]


def test_a_prediction_that_was_wrong_several_times_is_a_429() -> None:
    id = "ch01-predict-lengths"
    wrong = {"source": (ROOT / "practice/problems" / id / "starter.py").read_text("utf-8")}
    with Live(ROOT) as live:
        reader = live.reader()
        answers = [reader.ask("POST", f"/api/problems/{id}/submit", wrong) for _ in range(5)]
        assert [one.status for one in answers] == [202, 202, 202, 429, 429]
        assert "wrong several times" in answers[-1].error
        assert len(reader.get(f"/api/problems/{id}/history")) == 3


def test_an_endless_loop_costs_its_own_time_only(live: Live) -> None:
    reader = live.reader()
    endless, good = reader.post("run", ENDLESS), reader.post("run", GOOD)
    assert reader.verdict(endless)["verdict"]["code"] == "TLE"
    assert reader.verdict(good)["verdict"]["code"] == "AC"


HOSTILE = """
def total(numbers, start):
    print("</script><script>alert(1)</script>\\u2028\\x1b[31m\\r\\nevent: verdict\\ndata: {}\\n")
    raise ValueError("<img src=x onerror=alert(1)>\\udfff\\n\\nevent: verdict\\ndata: 1")
"""


def test_hostile_output_reaches_the_page_only_as_text_in_json(live: Live) -> None:
    reader = live.reader()
    job = reader.post("submit", HOSTILE)
    raw = reader.ask("GET", f"/api/jobs/{job}/events")
    assert raw.body.isascii() and raw.body.count(b"event: verdict\n") == 1
    data = reader.verdict(job)
    assert "<script>alert(1)" in data["verdict"]["stdout"]
    assert "<img src=x onerror=alert(1)>" in data["verdict"]["message"]["en"]
    for path in (f"/api/jobs/{job}", f"{TOTAL}/history", "/api/problems", TOTAL):
        answer = reader.ask("GET", path)
        assert answer.status == 200 and answer.body.isascii()
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_name_in_an_address_is_never_part_of_a_page(live: Live) -> None:
    reader = live.reader()
    name = "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    for path in (f"/p/{name}", f"/static/{name}", f"/book/{name}", f"/{name}"):
        answer = reader.ask("GET", path)
        assert answer.status == 404 and b"alert(1)" not in answer.body
    answer = reader.ask("GET", f"/api/problems/{name}")
    assert answer.status == 404 and answer.headers["content-type"] == "application/json"


def test_a_job_that_becomes_unknown_ends_its_stream(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = live.reader()
    job = reader.post("run", ENDLESS)
    with reader.open("GET", f"/api/jobs/{job}/events") as stream:
        assert stream.readline().startswith(b"event: ")
        monkeypatch.setattr(live.desk, "live", lambda _: None)
        assert b"event: verdict" not in stream.read()
    assert "run it again" in reader.ask("GET", f"/api/jobs/{job}").error


def test_our_own_fault_is_an_ie_and_the_next_job_is_judged(
    live: Live, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    reader = live.reader()

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("ours")

    with monkeypatch.context() as patched:
        patched.setattr(work, "try_samples", broken)
        verdict = reader.verdict(reader.post("run", GOOD))["verdict"]
    assert verdict["code"] == "IE" and verdict["message"]["en"] == "RuntimeError: ours"
    assert "RuntimeError: ours" in capfd.readouterr().err
    assert reader.verdict(reader.post("run", GOOD))["verdict"]["code"] == "AC"


def test_an_idle_server_loads_ahead_what_the_first_job_would_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: list[bool] = []
    monkeypatch.setattr(desk_module, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(work.Boxes, "warm", lambda _, torch: warmed.append(torch))
    with Live(tmp_path):
        wait_until(lambda: warmed)
    assert not warmed[0]  # the small problem needs no torch


def test_a_submission_for_a_problem_that_has_gone_ends_too(live: Live) -> None:
    reader = live.reader()
    records = live.desk._records
    id = records.progress.enqueue("ch99-gone", b"x", 1, "s", "0" * 32)
    live.desk._adopt()
    verdict = reader.verdict(id)["verdict"]
    assert verdict["code"] == "SK" and "no longer here" in verdict["message"]["en"]
    row = records.progress.submission(id)
    assert row is not None and row["code"] == "SK"


def test_a_store_that_cannot_be_opened_costs_the_record_and_not_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path / "file" / "home"))
    with Live(tmp_path) as live:
        reader = live.reader()
        found = reader.get("/api/problems")
        assert found["total"] == 1 and "cannot record progress" in found["notice"]["en"]
        assert "无法记录进度" in found["notice"]["zh"] and reader.get(TOTAL)["draft"] is None
        for _ in range(2):
            data = reader.verdict(reader.post("submit", GOOD))
            assert data["verdict"]["code"] == "AC"
            assert "cannot record progress" in data["notes"][0]["en"]
        refused = reader.ask("PUT", f"{TOTAL}/draft", {"source": GOOD})
        assert refused.status == 503 and "cannot record progress" in refused.error
        assert reader.ask("GET", f"{TOTAL}/history").status == 503
        (tmp_path / "file").unlink()  # put right while the server runs
        assert reader.verdict(reader.post("submit", GOOD))["notes"][0]["en"].startswith("the ref")
        assert len(reader.get(f"{TOTAL}/history")) == 1


def test_a_disk_that_fills_up_costs_the_record_and_not_the_verdict(live: Live) -> None:
    reader = live.reader()
    reader.verdict(reader.post("submit", GOOD))
    store = live.desk._records.progress.store
    (pages,) = store.rows("PRAGMA page_count")
    store.rows(f"PRAGMA max_page_count = {pages['page_count']}")
    padded = GOOD + "#" * 60_000
    data = reader.verdict(reader.post("submit", padded))
    assert data["verdict"]["code"] == "AC" and "disk is full" in data["notes"][0]["en"]
    assert reader.ask("PUT", f"{TOTAL}/draft", {"source": padded}).status == 503
    store.rows("PRAGMA max_page_count = 100000")
    assert reader.ask("PUT", f"{TOTAL}/draft", {"source": padded}).status == 204


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts files by /proc")
def test_listeners_that_vanish_leave_nothing_behind(tmp_path: Path) -> None:
    with Live(tmp_path) as live:
        reader = live.reader()
        reader.verdict(reader.post("run", GOOD))
        before = len(os.listdir("/proc/self/fd"))
        running = reader.post("run", ENDLESS)
        jobs = [running, reader.post("run", GOOD)]
        sockets = []
        for job in jobs * 15:
            sockets.append(socket.create_connection(("127.0.0.1", live.port)))
            line = f"GET /api/jobs/{job}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            sockets[-1].sendall(line.encode())
        for one in sockets:
            assert one.recv(4096).startswith(b"HTTP/1.1 200")
        wait_until(lambda: sum(map(len, live.desk._listeners.values())) == 30, 2)
        for one in sockets:
            one.close()
        wait_until(lambda: live.desk._listeners == {}, 4)
        reader.verdict(jobs[1])
        state = live._server.server_state
        wait_until(lambda: not state.tasks and not state.connections, 5)
        assert len(os.listdir("/proc/self/fd")) <= before
