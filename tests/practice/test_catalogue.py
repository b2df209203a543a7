"""Problem folders: read, and every fault in one line that says what is wrong."""

from pathlib import Path
from typing import Any

import pytest
from fakes import TOML, small_problem, write_problem

from practice.judgelib import folder, samples
from practice.judgelib.catalogue import load_catalogue, load_problem
from practice.judgelib.text import JudgeError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_LANG", "en")


def fault_of(root: Path, old: str, new: str) -> str:
    assert old in TOML
    with pytest.raises(JudgeError) as caught:
        small_problem(root, **{"problem.toml": TOML.replace(old, new)})
    text = str(caught.value)
    assert "\n" not in text and text.startswith("ch01-total: problem.toml: ")
    return text.removeprefix("ch01-total: problem.toml: ")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('kind = "call"', 'kind = "cal"', "`kind` is 'cal', must be one of call, ops"),
        ('kind = "call"', 'kind = "predict"', "kind predict has no `entry`"),
        ('kind = "call"', 'kind = "engine"', "kind engine has no `entry`"),
        ('id = "ch01-total"', 'id = "ch01-sum"', "`id` is 'ch01-sum', the folder is called"),
        ("chapter = 1", "chapter = 2", "`id` must be ch02-"),
        ("chapter = 1", 'chapter = "1"', "`chapter` must be of type int, not str"),
        ("chapter = 1", "chapters = 1", "unknown key `chapters`"),
        ('entry = "total"\n', "", "kind call needs `entry`"),
        ('"(numbers, start)"', '"(numbers, start"', "is not a signature such as f(q, k, v)"),
        ('["一", "二", "三"]', '["一", "二"]', "`hints.zh` needs 3 texts"),
        ('en = "A sum"\n', "", "`title` needs a text zh and a text en"),
        ('banned = ["sum"]', "tolerance = 2", "`tolerance` must be > 0 and ≤ 1"),
        ('banned = ["sum"]', "limits = {wall = 1}", "[limits] unknown key `wall`"),
        ('banned = ["sum"]', "limits = {wall_s = 0}", "[limits] `wall_s` must be > 0, got 0"),
        ('banned = ["sum"]', "banned = [3]", "`banned` must be a list of texts"),
        ("[hints]", "[hints", "Expected ']'"),
    ],
)
def test_each_fault_of_problem_toml_has_its_line(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert words in fault_of(tmp_path, old, new)


STEP = 'kind = "engine"\n[step]\nnumber = 1\npath = "minisgl/core.py"\nsymbols = ["Req"]\n'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("minisgl/core.py", "../core.py", "`path` is '../core.py', not a file such as"),
        ('["Req"]', "[]", "`symbols` is empty"),
        ('["Req"]', '["Req.x y"]', "'Req.x y' is not a name such as Class.method"),
        ("number = 1\n", "", "[step] key `number` is missing"),
    ],
)
def test_each_fault_of_a_step_has_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    head, _, tail = TOML.partition("entry =")
    tail = tail.partition('banned = ["sum"]\n')[2]
    text = head.replace('kind = "call"\n', "") + STEP.partition("[step]")[0] + tail
    text += "[step]" + STEP.partition("[step]")[2].replace(old, new)
    with pytest.raises(JudgeError) as caught:
        small_problem(tmp_path, **{"problem.toml": text})
    assert words in str(caught.value)


def test_a_broken_folder_does_not_hide_the_others(tmp_path: Path) -> None:
    write_problem(tmp_path)
    (tmp_path / "practice/problems/ch02-empty").mkdir()
    catalogue = load_catalogue(tmp_path)
    assert [problem.id for problem in catalogue.problems] == ["ch01-total"]
    assert catalogue.broken == ("ch02-empty: there is no problem.toml",)


def test_an_unknown_id_offers_the_nearest(tmp_path: Path) -> None:
    write_problem(tmp_path)
    catalogue = load_catalogue(tmp_path)
    assert catalogue["1"].id == "ch01-total"  # its number in the list
    for wrong in ("ch01-totl", "total", "ch1", "2"):
        with pytest.raises(JudgeError, match="the nearest is ch01-total"):
            catalogue[wrong]


def test_a_good_folder_has_no_faults(tmp_path: Path) -> None:
    problem = small_problem(tmp_path)
    samples.write_samples(problem)
    assert folder.faults(problem) == []
    assert "numbers = [1, 2, 3]\nstart = 10\n→ 16" in problem.statement().en


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"oracle.py": None}, "there is no oracle.py"),
        ({"alt/recursive.py": None}, "there is no different correct solution"),
        ({"mutants/subtracts.py": None}, "4 mutants, at least 5"),
        ({"mutants/subtracts.py": "x = 1\n"}, "line 1 must be a comment with the misconception"),
        ({"mutants/subtracts.py": "# why\n# caught by: all\n"}, "line 2 must be `# caught by:"),
        ({"mutants/subtracts.py": "# why\n# caught by: edge\ndef:\n"}, "invalid syntax"),
        ({"statement.en.md": "# A sum\n## Contract\n"}, "the headings must be What to build"),
        ({"statement.en.md": "# Sum\n"}, "the first line must be '# A sum'"),
        ({"oracle.py": "from solution import total as expected\n"}, "imports what it is to check"),
    ],
)
def test_each_fault_of_the_files_has_its_line(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    problem = small_problem(tmp_path)
    samples.write_samples(problem)
    found = folder.faults(load_problem(write_problem(tmp_path, **changes)))
    assert any(words in fault and "\n" not in fault for fault in found), found


def test_samples_out_of_date_are_told(tmp_path: Path) -> None:
    problem = small_problem(tmp_path)
    assert any("the samples are out of date" in fault for fault in folder.faults(problem))


def test_every_problem_of_the_repository_is_well_formed() -> None:
    catalogue = load_catalogue(ROOT)
    assert catalogue.broken == () and catalogue.problems
    for problem in catalogue.problems:
        assert folder.faults(problem) == []
