"""No hostile submission gets anything, at level 3 and 2, from root's and from a user's judge.

One process per level and user plays the judge and meets them all (hostile_runner.py); here each
meeting is a test. The same attacks at level 0, where nothing but limits is promised, do succeed:
it is the sandbox that stops them, not a fault of theirs.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hostile_runner import CASES, SUBMISSIONS
from levels_users import as_user, need, start

PLACES = [(level, user) for level in (3, 2) for user in ("root", "ordinary")]
RUN_SECONDS = 400
NEXT_SECONDS = 2.0
JUDGE_MB = 96
# Those that show on level 0 that they can do what they try, and do no harm by it.
BITING = {
    "read_secret_file": "leaks",
    "read_the_judges_environment": "leaks",
    "read_the_solutions": "leaks",
    "import_the_reference": "leaks",
    "exec_over_myself": "ended",
    "connect_tcp": "connections",
    "connect_unix": "connections",
    "send_udp": "connections",
}

Row = dict[str, Any]


@pytest.fixture(scope="session")
def rows_of() -> Iterator[Callable[[int, str], dict[str, Row]]]:
    """A function from level and user to the rows by name; the runs go on side by side."""
    running: dict[tuple[int, str], subprocess.Popen[str]] = {}
    rows: dict[tuple[int, str], dict[str, Row]] = {}

    def begin(level: int, user: str) -> None:
        need(level)
        command = as_user(user, ["hostile_runner.py", str(level)])
        running[level, user] = start(command)

    def get(level: int, user: str) -> dict[str, Row]:
        place = (level, user)
        if place not in running:
            begin(level, user)
            for other in PLACES:
                if other not in running:
                    try:
                        begin(*other)
                    except (pytest.skip.Exception, pytest.fail.Exception):
                        continue
        if place not in rows:
            out, err = running[place].communicate(timeout=RUN_SECONDS)
            assert running[place].returncode == 0, err[-2000:]
            rows[place] = {row["name"]: row for row in json.loads(out)}
        return rows[place]

    yield get
    for process in running.values():
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_there_are_at_least_forty() -> None:
    assert len(SUBMISSIONS) >= 40


@pytest.mark.parametrize(("level", "user"), PLACES, ids=lambda value: str(value))
@pytest.mark.parametrize("name", SUBMISSIONS)
def test_a_hostile_submission_gets_nothing(
    name: str, level: int, user: str, rows_of: Callable[[int, str], dict[str, Row]]
) -> None:
    row = rows_of(level, user)[name]
    assert row["level"] == level
    assert (row["uid"] == 0) == (user == "root")
    accepted = row["ended"] == "done" and row["right_answers"] == CASES
    assert not accepted and row["right_answers"] == 0, "it got answers right"
    assert row["ended"] != "internal", row["detail"]
    assert row["leaks"] == [], "it read what it must not know, or did what it must not do"
    assert row["connections"] == 0, "it reached a socket outside"
    assert row["left_processes"] == 0, "something outlived its job"
    assert not row["box_lost"], "the preloaded process had to be started again"
    assert row["next_ok"], "the next honest submission was not judged right"
    assert row["next_s"] <= NEXT_SECONDS, "it delayed the next honest submission"
    assert row["judge_grew_mb"] <= JUDGE_MB, "the judge's memory grew"


def test_the_same_attacks_bite_without_a_sandbox() -> None:
    command = [sys.executable, "hostile_runner.py", "0", *BITING]
    out, err = start(command).communicate(timeout=100)
    assert out, err
    rows = {row["name"]: row for row in json.loads(out)}
    assert rows.keys() == BITING.keys()
    for name, sign in BITING.items():
        assert rows[name][sign] not in ([], 0, "done"), name
        assert rows[name]["left_processes"] == 0, name
        assert rows[name]["next_ok"], name
