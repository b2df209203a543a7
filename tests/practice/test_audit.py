"""The audit: each rule has a problem that breaks it and is caught."""

import ast
import contextlib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from fakes import FILES, TOML, small_problem

from practice.judgelib import auditing, engine, mutate, patches
from practice.judgelib.audit import Report, Tier, audit
from practice.judgelib.box import Box
from practice.judgelib.catalogue import load_problem
from practice.judgelib.cheats import cheats
from practice.judgelib.samples import write_samples
from practice.judgelib.text import JudgeError

ROOT = Path(__file__).resolve().parents[2]
SMALL = Tier(solution_seeds=2, mutant_seeds=1, hand=20, automatic=40)


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with Box(torch=False) as one:
        yield one


def report_of(root: Path, box: Box, **changes: str | None) -> Report:
    problem = small_problem(root, **changes)
    with contextlib.suppress(Exception):
        write_samples(problem)
    return audit(problem, box, SMALL)


def test_a_good_problem_has_no_faults(tmp_path: Path, box: Box) -> None:
    report = report_of(tmp_path, box)
    assert report.faults == []
    assert (report.starter, report.passes, report.runs) == ("RE", 4, 4)
    assert report.hand_killed == report.hand == 5
    assert report.killed == report.automatic == 2
    assert report.cheats == 10


SOLUTION = FILES["solution.py"]
RANDOM_CASES = FILES["cases.py"].replace("rng.randint(1, 99)", "__import__('random').random()")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"starter.py": SOLUTION}, "the starter gives AC"),
        ({"starter.py": "def total(numbers, start): return 0\n"}, "the starter gives WA"),
        ({"alt/recursive.py": SOLUTION.replace("= start", "= 0")}, "alt/recursive.py fails: WA"),
        ({"solution.py": SOLUTION.replace("= start", "= 0")}, "the solution fails: WA in sample"),
        (
            {"mutants/subtracts.py": "# Nothing.\n# caught by: edge\n" + dedent(SOLUTION)},
            "mutants/subtracts.py is not caught by edge: AC",
        ),
        (
            {
                "mutants/subtracts.py": "# Abs.\n# caught by: basic\n"
                "def total(numbers, start):\n    return start + sum_(map(abs, numbers))\n"
                "def sum_(x):\n    r = 0\n    for y in x: r += y\n    return r\n"
            },
            "mutants/subtracts.py is not caught by basic: AC",
        ),
        ({"cases.py": RANDOM_CASES}, "the same seed gives other cases"),
        (
            {"cases.py": FILES["cases.py"].replace("[1, 2, 3], 10", "some(3), 10")},
            "the samples change with the seed",
        ),
        (
            {"cases.py": FILES["cases.py"].replace(", plain=True", "")},
            "'empty' expects its own input",
        ),
        ({"cases.py": FILES["cases.py"].replace("[-5, 2], 1", "[-5, 2], 3")}, "nothing but zero"),
        ({"cases.py": "def cases(rng):\n    return {}\n"}, "no sample"),
        ({"cases.py": "1 / 0\n"}, "ZeroDivisionError"),
    ],
)
def test_what_is_wrong_with_a_problem_is_found(
    tmp_path: Path, box: Box, changes: dict[str, str | None], words: str
) -> None:
    report = report_of(tmp_path, box, **changes)
    assert any(words in fault for fault in report.faults), report.faults


def test_a_surviving_mutant_needs_a_reason(tmp_path: Path, box: Box) -> None:
    slow = SOLUTION.replace("result = start", "result = start\n            x = 3")
    report = report_of(tmp_path, box, **{"solution.py": slow})
    what = "total: x = 3 → x = 4"
    assert f"automatic mutant survives without a reason: {what}" in report.faults
    assert report.survivors == [(what, "")]
    toml = f'{TOML}\n[survivors]\n"{what}" = "x is not used"\n'
    report = report_of(tmp_path, box, **{"solution.py": slow, "problem.toml": toml})
    assert report.faults == [] and report.survivors == [(what, "x is not used")]


def test_tolerance_must_lie_between_correct_and_wrong(tmp_path: Path, box: Box) -> None:
    floats = {
        name: text.replace("rng.randint(1, 99)", "rng.random()").replace("rng.randint(1, 9)", "0.5")
        for name, text in {"cases.py": FILES["cases.py"]}.items()
    }
    alt = "# Nearly.\ndef total(numbers, start):\n    for n in numbers: start += n\n"
    alt += "    return start * (1 + 1e-6) if type(start) is float else start\n"
    toml = TOML.replace("[title]", "tolerance = 1e-5\n[title]", 1)
    changes: dict[str, str | None] = {**floats, "problem.toml": toml, "alt/recursive.py": alt}
    report = report_of(tmp_path, box, **changes)
    assert any("a correct solution has an error of" in fault for fault in report.faults)


def test_the_audit_of_nothing_is_red(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from practice.judgelib.catalogue import Catalogue

    assert auditing.run_audit(Catalogue((), ()), [], True, False, None) == 1
    assert "there is no problem to audit" in capsys.readouterr().out
    assert auditing.run_audit(Catalogue((), ("x: broken",)), [], True, False, None) == 1


def test_mutants_change_one_place_and_leave_assertions_alone() -> None:
    text = '''\
def f(a, b=2):
    """Say 3."""
    assert a < 5, "a"
    if not a and b >= 1:
        raise ValueError(f"{a + 1}")
    x: int = a[1:b] if b else []
    for i, _ in zip(range(len(x)), x, strict=True):
        x[i] += min(a, -b)
        if i == 7:
            break
    return sorted(x, reverse=True)
'''
    found = mutate.mutants(text)
    for mutant in found:
        ast.parse(mutant.source)
        changed = [
            one != other
            for one, other in zip(text.split("\n"), mutant.source.split("\n"), strict=True)
        ]
        assert sum(changed) == 1 and "assert a < 5" in mutant.source and "a + 1" in mutant.source
        assert "strict=True" in mutant.source
    whats = [mutant.what for mutant in found]
    assert len(set(whats)) == len(whats)
    for expected in (
        "f: if not a and b >= 1: → if (not a or b >= 1):",
        "f: if not a and b >= 1: → if not a and (b > 1):",
        "f: x[i] += min(a, -b) → pass",
        "f: x[i] += min(a, -b) → x[i] += max(a, -b)",
        "f: break → continue",
        "f: return sorted(x, reverse=True) → return sorted(x)",
        "f: return sorted(x, reverse=True) → return None",
        "f: x: int = a[1:b] if b else [] → x: int = a[:b] if b else []",
    ):
        assert expected in whats
    assert mutate.sampled(text, (), 5, "s") == mutate.sampled(text, (), 5, "s")
    assert len(mutate.sampled(text, (), 5, "s")) == 5
    assert mutate.mutants(text, ["g"]) == []


def test_a_replacement_changes_its_symbols_and_no_others() -> None:
    problem = load_problem(ROOT / "practice/problems/ch01-req-lengths")
    base = engine.reference(problem)
    text = "import math\n\nclass Req:\n    @property\n"
    text += "    def extend_len(self):\n        return helper(1)\n"
    text += "\n    def more(self):\n        return 1\n\ndef helper(x):\n    return math.floor(x)\n"
    made = engine.replaced(problem, text)
    names = set(patches.functions(made))
    assert {"helper", "Req.more", "Req.extend_len", "Batch.size"} <= names
    assert "return self.device_len - self.cached_len" not in made
    assert made.count("def extend_len") == 1 and "import math" in made
    ast.parse(made)
    with pytest.raises(JudgeError, match=r"Req\.__repr__"):
        engine.replaced(problem, "class Req:\n    def __repr__(self):\n        return ''\n")
    with pytest.raises(JudgeError):
        engine.replaced(problem, "class Req:\n    x = 3\n")
    assert engine.replaced(problem, "") == base


def test_an_engine_starter_has_stubs_for_its_symbols_only() -> None:
    problem = load_problem(ROOT / "practice/problems/ch01-req-lengths")
    text = engine.starter(problem)
    for symbol in engine.place_of(problem).symbols:
        assert f'raise NotImplementedError("ch01-req-lengths: {symbol}")' in text
    assert text.count("raise NotImplementedError") == 6
    assert "def is_greedy(self)" in text and "always_the_best" in text


def test_cheats_are_made_for_every_kind() -> None:
    for id, count in (
        ("ch01-req-lengths", 10),
        ("ch02-attention", 10),
        ("ch01-predict-lengths", 3),
    ):
        found = cheats(load_problem(ROOT / "practice/problems" / id))
        assert len(found) == count
        for text in found.values():
            ast.parse(text)
