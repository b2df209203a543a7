"""From a submission to a verdict, with a box that is none, and the faults of other graders."""

import dataclasses
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import GOOD, TOML, FakeBox, small_problem

from practice.judgelib import engine, show
from practice.judgelib.audit import QUICK, audit
from practice.judgelib.box import Box
from practice.judgelib.catalogue import Problem, load_problem
from practice.judgelib.core import judge, plan
from practice.judgelib.verdict import CODES, Verdict, render

ROOT = Path(__file__).resolve().parents[2]
HEAD = "def total(numbers, start):\n    "


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return small_problem(tmp_path)


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with Box(torch=False) as one:
        yield one


def verdict_of(problem: Problem, body: str, box: FakeBox | None = None) -> Verdict:
    return judge(problem, HEAD + body + "\n", box=box or FakeBox(), seed=7)


def test_a_right_answer_is_accepted(problem: Problem) -> None:
    verdict = judge(problem, GOOD, box=FakeBox(), seed=7)
    assert verdict.accepted and verdict.cases == 7 and verdict.seed == 7


def test_the_box_never_sees_what_is_expected(problem: Problem) -> None:
    box = FakeBox()
    judge(problem, GOOD, box=box, seed=7)
    assert [set(case) for case in box.cases] == [{"args", "kwargs"}] * 7
    # The oracle works on copies, so nothing it does reaches the box either.
    assert box.cases[0] == {"args": [[1, 2, 3], 10], "kwargs": {}}


def test_another_seed_gives_other_cases(problem: Problem) -> None:
    one, again, other = (plan(problem, seed) for seed in (1, 1, 2))
    assert one == again and one != other


def test_the_smallest_failing_input_of_the_first_failing_group_is_shown(problem: Problem) -> None:
    body = "return start + sum(numbers) if len(numbers) == 3 else 0"
    problem = load_problem_without_bans(problem)
    verdict = verdict_of(problem, body)
    assert (verdict.code, verdict.group, verdict.label.en) == ("WA", "basic", "basic")
    assert verdict.case.count(",") == 1  # of seven, two and five numbers: the two
    assert verdict.got == "0" and int(verdict.expected) > 0


def load_problem_without_bans(problem: Problem) -> Problem:
    path = problem.folder / "problem.toml"
    path.write_text(TOML.replace('banned = ["sum"]\n', ""), "utf-8")
    return load_problem(problem.folder)


def test_a_hidden_case_shows_its_label_and_what_is_small(problem: Problem) -> None:
    body = "\n    ".join(
        ["for n in numbers:", "    start += abs(n)", "return start if numbers else 3"]
    )
    verdict = verdict_of(problem, body)
    assert (verdict.code, verdict.group, verdict.label.en) == ("WA", "edge", "negative")
    assert re.fullmatch(r"numbers = \[-?\d+, -?\d+\]\nstart = -?\d+", verdict.case)


def test_a_verdict_shows_what_the_failing_case_printed(problem: Problem, box: Box) -> None:
    source = HEAD + "print('start', start)\n    for n in numbers:\n        start += n\n"
    source += "    return start + (not numbers)\n"
    verdict = judge(problem, source, box=box, seed=7)
    assert verdict.code == "WA" and verdict.stdout.count("start") == 1


def test_of_large_values_the_shape_is_shown() -> None:
    assert show.brief(list(range(300))) == "list[300] of int"
    found = show.brief({"page_size": 4, "ids": list(range(300)), "name": "x" * 300})
    assert found == "{'page_size': 4, 'ids': list[300] of int, 'name': str}"


def test_an_exception_is_re_with_its_words(problem: Problem) -> None:
    verdict = verdict_of(problem, "return numbers[99]")
    assert (verdict.code, verdict.group) == ("RE", "sample")
    assert verdict.message.en == "IndexError: list index out of range"


def test_code_that_cannot_be_imported_is_re_with_its_words(problem: Problem) -> None:
    verdict = judge(problem, GOOD + "\n1 / 0\n", box=FakeBox(), seed=7)
    assert (verdict.code, verdict.message.en) == ("RE", "ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        ("exited", "RE"),
        ("killed", "RE"),
        ("timeout", "TLE"),
        ("memory", "MLE"),
        ("output", "OLE"),
        ("violation", "SV"),
        ("protocol", "SV"),
        ("internal", "IE"),
    ],
)
@pytest.mark.parametrize("after", [0, 3, 7])
def test_a_job_that_does_not_end_well_is_never_accepted(
    problem: Problem, ended: str, code: str, after: int
) -> None:
    box = FakeBox(ended=ended, after=after)  # type: ignore[arg-type]
    verdict = judge(problem, GOOD, box=box, seed=7)
    assert verdict.code == code and str(verdict.message)
    assert verdict.cases == after


def test_too_few_answers_are_never_accepted(problem: Problem) -> None:
    assert judge(problem, GOOD, box=FakeBox(after=6), seed=7).code == "RE"
    assert judge(problem, GOOD, box=FakeBox(after=0), seed=7).code == "RE"


@pytest.mark.parametrize(
    "answer", [{"error": 3}, {"yes": 1}, [], "AC", {"ok": 1, "error": {}}, True]
)
def test_an_answer_of_another_form_is_never_accepted(problem: Problem, answer: object) -> None:
    assert judge(problem, GOOD, box=FakeBox(answer=answer), seed=7).code == "SV"


def test_out_of_memory_in_an_answer_is_mle(problem: Problem) -> None:
    assert verdict_of(problem, "raise MemoryError").code == "MLE"
    body = 'raise RuntimeError("DefaultCPUAllocator: can\'t allocate memory")'
    assert verdict_of(problem, body).code == "MLE"


def test_no_cases_is_not_accepted(problem: Problem) -> None:
    verdict = judge(problem, GOOD, box=FakeBox(), seed=7, groups=["large"])
    assert verdict.code == "IE"


def test_a_fault_of_the_problem_is_ours(tmp_path: Path) -> None:
    problem = small_problem(tmp_path, **{"oracle.py": "def expected(case):\n    return 1 / 0\n"})
    verdict = judge(problem, GOOD, box=FakeBox(), seed=7)
    assert verdict.code == "IE" and "ZeroDivisionError" in verdict.message.en
    problem = small_problem(tmp_path, **{"oracle.py": None})
    assert "there is no oracle.py" in judge(problem, GOOD, box=FakeBox(), seed=7).message.en


def test_a_step_that_is_not_here_is_skipped_and_never_accepted() -> None:
    problem = load_problem(ROOT / "practice/problems/ch01-req-lengths")
    far = problem.__class__(**(problem.__dict__ | {"step": _at_step(problem, 99)}))
    verdict = judge(far, "x = 1\n", box=None, seed=1)
    assert verdict.code == "SK" and not verdict.accepted
    assert verdict.message.en == "step 99 is not here"


def _at_step(problem: Problem, number: int) -> object:
    place = engine.place_of(problem)
    return place.__class__(number, place.path, place.symbols)


def test_every_code_is_rendered_in_both_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    for language in ("zh", "en"):
        monkeypatch.setenv("MINISGL_LANG", language)
        for code in CODES:
            text = render(Verdict(code), "x")  # type: ignore[arg-type]
            assert CODES[code][language == "en"] in text


def test_json_holds_everything_and_is_json(problem: Problem) -> None:
    verdict = verdict_of(problem, "return float('nan')")
    found = json.loads(json.dumps(verdict.as_json(), allow_nan=False))
    assert found["code"] == "WA" and found["message"]["en"] and found["meaning"]["zh"]


# What public graders of this kind get wrong, in the real box.


def test_leaving_with_status_0_is_not_accepted(problem: Problem, box: Box) -> None:
    problem = dataclasses.replace(problem, banned=())
    for body in ("__import__('os')._exit(0)", "raise SystemExit(0)", "quit()"):
        assert judge(problem, HEAD + body, box=box, seed=7).code == "RE"
    verdict = judge(problem, "import os\nos._exit(0)\n" + GOOD, box=box, seed=7)
    assert verdict.code == "RE" and verdict.traceback == ""
    assert verdict.message.en == "the process ended without an answer (exit status 0)"


def test_an_object_equal_to_everything_is_not_accepted(problem: Problem, box: Box) -> None:
    text = """\
class Same(int):
    __eq__ = lambda *_: True
    __ne__ = lambda *_: False
    __hash__ = int.__hash__

def total(numbers, start):
    return Same(start)
"""
    verdict = judge(problem, text, box=box, seed=7)
    assert verdict.code in ("RE", "WA") and verdict.group == "sample"


def test_a_loop_in_the_first_case_takes_the_time_of_all(problem: Problem, box: Box) -> None:
    text = HEAD + "try:\n        while start == 10: pass\n    except BaseException: pass\n"
    text += "    return start\n"
    verdict = judge(problem, text, box=box, seed=7, wall_s=1.0)
    assert (verdict.code, verdict.group) == ("TLE", "sample")
    assert verdict.wall_s < 3.0


def test_changing_the_inputs_does_not_change_what_is_expected(problem: Problem, box: Box) -> None:
    text = HEAD + "numbers.clear()\n    return start\n"
    verdict = judge(problem, text, box=box, seed=7)
    assert verdict.code == "RE" and verdict.message.en.startswith("InputChanged: ")


def test_prints_are_shown_and_never_believed(problem: Problem, box: Box) -> None:
    text = HEAD + "print('AC {\"ok\": 16}')\n    return None\n"
    verdict = judge(problem, text, box=box, seed=7)
    assert verdict.code == "WA" and verdict.stdout.startswith('AC {"ok": 16}\n')


def test_the_traceback_shows_the_reader_s_own_line(problem: Problem, box: Box) -> None:
    verdict = judge(problem, HEAD + "x = {}\n    return x['missing']\n", box=box, seed=7)
    assert "line 3, in total" in verdict.traceback and "x['missing']" in verdict.traceback
    assert "child.py" not in verdict.traceback


# The other kinds, in the real box.

POOL = {
    "problem.toml": TOML.replace('kind = "call"', 'kind = "ops"')
    .replace('"total"', '"Pool"')
    .replace('"(numbers, start)"', '"(size)"\nmethods = ["take(n)"]'),
    "driver.py": """\
        from submission import Pool

        def run(ops):
            pool, results = None, []
            for name, number in ops:
                if name == "new":
                    pool = Pool(number)
                    results.append(number)
                else:
                    results.append(pool.take(number))
            return results
    """,
    "cases.py": """\
        from practice.judgelib.cases import Case

        def cases(rng):
            return {"sample": [Case("池", "a pool", ops=[["new", 3], ["take", 2], ["take", 2]])]}
    """,
    "oracle.py": """\
        def expected(case):
            return [3, [0, 1], None]
    """,
}
POOL_CLASS = """\
class Pool:
    def __init__(self, size):
        self.free = list(range(size))

    def take(self, n):
        if n > len(self.free):
            return None
        taken, self.free = self.free[:n], self.free[n:]
        return taken
"""


def test_a_class_is_driven_by_operations(tmp_path: Path, box: Box) -> None:
    pool = small_problem(tmp_path, **POOL)
    assert judge(pool, POOL_CLASS, box=box, seed=1).accepted
    verdict = judge(pool, POOL_CLASS.replace("return None", "pass"), box=box, seed=1)
    assert verdict.code == "WA" and verdict.first_wrong_index == "[2]  ← ['take', 2]"
    assert (verdict.expected, verdict.got) == ("None", "[2]")
    missing = judge(pool, POOL_CLASS.replace("def take", "def get"), box=box, seed=1)
    assert missing.code == "CE" and "no method take(n)" in missing.message.en


def test_a_planted_fault_is_what_a_repair_starts_from(tmp_path: Path) -> None:
    for name in ("steps", "minisgl", "tests", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    folder = tmp_path / "practice/problems/ch01-req-repair"
    shutil.copytree(ROOT / "practice/problems/ch01-req-lengths", folder)
    toml = (folder / "problem.toml").read_text().replace("ch01-req-lengths", "ch01-req-repair")
    (folder / "problem.toml").write_text(toml.replace('kind = "engine"', 'kind = "bug"'))
    planted = (folder / "mutants/moves_in_the_wrong_order.py").rename(folder / "mutants/planted.py")
    problem = load_problem(folder)
    start = engine.starter(problem)
    assert "self.device_len += 1\n        self.cached_len = self.device_len" in start
    assert planted.exists() and "NotImplementedError" not in start
    with Box() as box:
        report = audit(problem, box, QUICK)
    assert report.faults == [] and report.starter == "WA"
