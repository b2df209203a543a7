"""Benchmarks: turns are fair, steps are isolated, and a record without its script is noticed."""

import json
import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import check  # noqa: E402

import _bench  # noqa: E402  (its folder must be importable first)

SCRIPT = '''
"""A benchmark."""

import os

# what the process is given
def setup(start=0):
    """Set up."""
    return {"count": start}

def count(state, by):
    print("a line for people")
    state["count"] += by
    return state["count"]

def whoami(state):
    return [os.getpid(), os.environ.get("MINISGL_TREE")]

def greedy(state):
    import minisgl.core
    return [minisgl.__file__, minisgl.core.SamplingParams(top_k=1).is_greedy]

def early(state):
    import minisgl.layers

def main_of_the_tree(state):
    import ch00_tiny_engine
    return ch00_tiny_engine.__file__

def fails(state):
    raise ValueError("no such thing\\nand more")

def ends(state):
    os._exit(3)
'''


def load(path: Path) -> Any:
    return _bench._load(path)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "ch99_thing.py"
    path.write_text(SCRIPT, "utf-8")
    monkeypatch.setenv("MINISGL_LANG", "en")
    return path


# --- fair pairs -------------------------------------------------------------------------------


def taking(log: list[str], name: str, figures: list[float]) -> Callable[[], float]:
    rest = iter(figures)

    def take() -> float:
        log.append(name)
        return next(rest)

    return take


def test_subjects_take_turns_after_a_warm_up() -> None:
    log: list[str] = []
    _bench.alternate(taking(log, "a", [1.0] * 7), taking(log, "b", [1.0] * 7), pairs=6)
    assert "".join(log) == "ab" + "abba" * 3


def test_the_warm_up_does_not_count_and_an_outlier_hardly() -> None:
    of_a = [99.0, 2.0, 2.0, 50.0, 2.0, 2.0]
    of_b = [99.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    pair = _bench.alternate(taking([], "a", of_a), taking([], "b", of_b))
    assert (pair.a, pair.b, pair.ratio, pair.spread) == (2.0, 1.0, 2.0, 0.0)


def test_the_ratio_survives_a_machine_that_slows_down() -> None:
    slow = [1.0, 1.0, 1.0, 1.0, 10.0, 10.0]
    of_a, of_b = [2 * x for x in slow], list(slow)
    pair = _bench.alternate(taking([], "a", of_a), taking([], "b", of_b))
    assert pair.ratio == 2.0
    assert pair.spread > 0.1


def test_fewer_than_five_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 5 pairs are needed, not 4"):
        _bench.alternate(lambda: 1.0, lambda: 1.0, pairs=4)


# --- isolated steps ---------------------------------------------------------------------------


def test_a_step_process_sees_its_step_only(script: Path) -> None:
    module = load(script)
    with _bench.StepProcess(1, module.setup) as step:
        place, is_greedy = step(module.greedy)
        assert "ch01-" in place and (BENCH.parent / ".steps" / "trees") in Path(place).parents
        assert is_greedy is True
        with pytest.raises(RuntimeError, match=r"No module named 'minisgl\.layers'"):
            step(module.early)


def test_a_step_without_a_package_has_its_main(script: Path) -> None:
    module = load(script)
    with _bench.StepProcess(0, module.setup) as step:
        assert "ch00-" in step(module.main_of_the_tree)


def test_a_peer_must_not_see_the_package(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_TREE", str(BENCH.parent))
    module = load(script)
    with _bench.StepProcess(None, module.setup) as peer:
        assert peer(module.whoami)[1] is None
        with pytest.raises(RuntimeError, match=r"minisgl was imported from|No module named"):
            peer(module.greedy)


def test_a_process_keeps_what_setup_has_returned(script: Path) -> None:
    module = load(script)
    with _bench.StepProcess(None, module.setup, 40) as process:
        assert process(module.count, 1) == 41
        assert process(module.count, 1) == 42
        assert process(module.whoami)[0] != os.getpid()


def test_an_error_comes_back_as_one_line_and_the_process_goes_on(script: Path) -> None:
    module = load(script)
    with _bench.StepProcess(None, module.setup) as process:
        with pytest.raises(RuntimeError) as raised:
            process(module.fails)
        assert str(raised.value) == "ch99_thing.py: fails: ValueError: no such thing"
        assert process(module.count, 1) == 1


def test_a_process_that_ends_is_an_error(script: Path) -> None:
    module = load(script)
    with (
        _bench.StepProcess(None, module.setup) as process,
        pytest.raises(RuntimeError, match="the process of ends has ended"),
    ):
        process(module.ends)


def test_no_process_is_left_behind(script: Path) -> None:
    module = load(script)
    with pytest.raises(KeyError), _bench.StepProcess(None, module.setup) as process:
        pid = process(module.whoami)[0]
        raise KeyError
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


# --- the hash of a script ---------------------------------------------------------------------


def hash_of(text: str, folder: Path) -> str:
    path = folder / "some.py"
    path.write_text(text, "utf-8")
    return _bench.script_hash(path)


def test_format_comments_and_docstrings_do_not_change_the_hash(tmp_path: Path) -> None:
    plain = 'def f(a, b):\n    return {"x": a, "y": [b]}\n'
    other = (
        '"""Doc."""\n# why\n\n\ndef f(\n    a,\n    b,\n):\n    """Doc."""\n'
        "    return {\n        'x': a,\n        'y': [b],\n    }\n"
    )
    assert hash_of(plain, tmp_path) == hash_of(other, tmp_path)


@pytest.mark.parametrize(
    "changed",
    ["LENGTHS = (1, 3)", "LENGTHS = [1, 2]", "LENGTH = (1, 2)", "LENGTHS = (1, 2)\nx = None"],
)
def test_what_a_script_does_changes_the_hash(tmp_path: Path, changed: str) -> None:
    assert hash_of("LENGTHS = (1, 2)", tmp_path) != hash_of(changed, tmp_path)


def test_empty_values_are_told_apart(tmp_path: Path) -> None:
    values = ("None", "''", "0", "False", "0.0", "b''", "...", "[]", "()")
    assert len({hash_of(f"x = {value}", tmp_path) for value in values}) == len(values)


def test_the_hash_is_the_same_on_every_python(tmp_path: Path) -> None:
    text = "async def f(*, a: int = 0) -> str: f'{a!r:>{a}}'"
    assert (
        hash_of(text, tmp_path)
        == "f6ded95b15ce0979bc8c9a11b2f52645180eada3e6e9eaa55f4991e929295f5c"
    )


# --- records ----------------------------------------------------------------------------------


@pytest.fixture
def running(script: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a benchmark that is being run."""
    main = ModuleType("__main__")
    main.__file__ = str(script)
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "argv", [str(script), "--record"])
    return script.parent


def write_record(folder: Path) -> Path:
    rows = [{"length": 16, "ms": 12.34567}, {"length": 64, "ms": 0.000123456}]
    _bench.record("ch99_thing", "milliseconds against length", rows)
    return folder / "ch99_thing.json"


def test_a_record_says_what_was_measured_where_and_how(
    running: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(write_record(running).read_text("utf-8"))
    assert list(found) == check.KEYS
    assert found["key"] == "ch99_thing"
    assert found["rows"] == [{"length": 16, "ms": 12.35}, {"length": 64, "ms": 0.0001235}]
    assert found["machine"]["cores"] == _bench.cores() >= 1
    assert found["machine"]["memory_gib"] > 0
    assert found["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"torch", "transformers"} <= set(found["versions"])
    assert abs(time.time() - time.mktime(time.strptime(found["date"], "%Y-%m-%d"))) < 2 * 86400
    assert capsys.readouterr().out.splitlines()[:2] == ["length         ms", "    16      12.35"]
    assert list(check.faults(running)) == []


def test_a_record_does_not_say_whose_machine_it_is(running: Path) -> None:
    text = write_record(running).read_text("utf-8")
    for secret in (str(running), str(Path.home()), socket.gethostname()):
        assert secret not in text


def test_a_run_is_shown_beside_the_record_and_writes_nothing(
    running: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_record(running)
    before = path.read_bytes()
    monkeypatch.setattr(sys, "argv", [str(running / "ch99_thing.py")])
    capsys.readouterr()
    for ms, said in ((12.0, "nothing differs by much"), (24.7, "length=16  ms: 12.35 → 24.7")):
        rows = [{"length": 16, "ms": ms}, {"length": 64, "ms": 0.00012}]
        _bench.record("ch99_thing", "milliseconds against length", rows)
        shown = capsys.readouterr().out
        assert shown.splitlines()[1].split() == ["16", str(ms)]  # this run's, and the record's:
        assert "    16      12.35" in shown and said in shown
        assert "the record stays; --record replaces it" in shown
    _bench.record("ch99_thing", "milliseconds", [{"length": 16, "s": 1.0}])
    assert "differ from the recorded ones" in capsys.readouterr().out
    assert path.read_bytes() == before and len(list(running.glob("*.json"))) == 1


def test_a_benchmark_takes_no_other_argument() -> None:
    command = [sys.executable, "bench/ch00_length.py", "--recrod"]
    done = subprocess.run(command, cwd=BENCH.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith(
        "python3 bench/ch00_length.py [--record]"
    )


def test_a_figure_that_is_no_number_is_not_recorded(running: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        _bench.record("ch99_thing", "broken", [{"ms": math.nan}])
    assert not (running / "ch99_thing.json").exists()


def test_a_changed_script_is_noticed_and_a_new_comment_is_not(running: Path) -> None:
    write_record(running)
    script = running / "ch99_thing.py"
    script.write_text(script.read_text("utf-8") + "\n# the end\n", "utf-8")
    assert list(check.faults(running)) == []
    script.write_text(script.read_text("utf-8").replace("+= by", "+= 2 * by"), "utf-8")
    assert list(check.faults(running)) == [
        "ch99_thing.json: bench/ch99_thing.py has changed since: run it again with --record"
    ]


def test_a_script_without_a_record_and_a_record_without_its_script(running: Path) -> None:
    write_record(running)
    (running / "ch99_thing.py").rename(running / "ch98_other.py")
    assert list(check.faults(running)) == [
        "ch99_thing.json: its script ch99_thing.py does not exist",
        "ch98_other.py: no record: run python3 bench/ch98_other.py --record",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"key": "other"}, "`key` differs"),
        ({"what": " "}, "`what` must be a text"),
        ({"machine": {"cpu": "fast"}}, "`machine` must have cores, cpu, memory_gib, os"),
        ({"versions": {"python": "3.11"}}, "`versions` must have python, torch"),
        ({"script": "ch99_thing.py"}, "`script` must have path, sha256"),
        ({"date": "yesterday"}, "`date` must be YYYY-MM-DD"),
        ({"date": "20260101"}, "`date` must be YYYY-MM-DD"),
        ({"rows": []}, "`rows` must be a list of objects, and not empty"),
        ({"rows": [1]}, "`rows` must be a list of objects, and not empty"),
        ({"rows": [{"a": 1}, {"b": 1}]}, "`rows` must all have the same columns"),
        ({"rows": [{"a": [1]}]}, "`a` of row 0 must be a number"),
        ({"rows": [{"a": math.inf}]}, "`a` of row 0 must be a number"),
        ({"what": "the speed of /somebody/bench/x.py"}, "it names a path on this machine"),
        ({"more": 1}, "its keys must be"),
    ],
)
def test_every_fault_of_a_record_is_one_line(
    running: Path, change: dict[str, object], said: str
) -> None:
    path = write_record(running)
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    (line,) = (one for one in check.faults(running) if "no record" not in one)
    assert line.startswith("ch99_thing.json: ")
    assert said in line
    assert "\n" not in line


def test_a_record_that_is_no_json_is_one_line(running: Path) -> None:
    (running / "ch99_thing.json").write_text("{", "utf-8")
    first, second = check.faults(running)
    assert first.startswith("ch99_thing.json: not JSON: ")
    assert second.startswith("ch99_thing.py: no record")


def test_the_records_of_this_repository_match_their_scripts() -> None:
    assert list(check.faults(BENCH)) == []
