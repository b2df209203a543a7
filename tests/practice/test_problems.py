"""The problems of the repository: the mistakes that public graders accept are rejected here."""

import ast
import contextlib
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from detours import DETOURS

from practice.judgelib import engine, patches, sessions
from practice.judgelib.box import Box
from practice.judgelib.catalogue import Problem, load_catalogue, load_problem
from practice.judgelib.commands import main
from practice.judgelib.core import judge, try_samples
from practice.judgelib.predict import read_answers
from practice.judgelib.static import Rejected
from practice.judgelib.store import LONGEST_WAIT_S, Progress
from tools.steplib.source import Function, parse, scopes

PROBLEMS = Path(__file__).resolve().parents[2] / "practice" / "problems"


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with Box() as one:
        yield one


@pytest.mark.parametrize(
    "name",
    [
        "no_scale",
        "scale_by_head_dim",
        "scale_by_all_heads",
        "sigmoid",
        "normalised_sigmoid",
        "hard_argmax",
    ],
)
def test_attention_that_other_graders_accept_is_rejected(box: Box, name: str) -> None:
    problem = load_problem(PROBLEMS / "ch02-attention")
    verdict = judge(problem, problem.files("mutants")[f"{name}.py"], box=box, seed=3)
    assert verdict.code == "WA" and verdict.error > 100 * (problem.tolerance or 0)


def test_the_attention_of_torch_is_banned_and_right(box: Box) -> None:
    problem = load_problem(PROBLEMS / "ch02-attention")
    text = """\
import torch.nn.functional as F

def attention(q, k, v):
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(0, 1)
"""
    assert judge(problem, text, box=box, seed=3).code == "BAN"
    allowed = problem.__class__(**(problem.__dict__ | {"banned": ()}))
    assert judge(allowed, text, box=box, seed=3).code == "AC"


@pytest.mark.parametrize("name", DETOURS)
def test_what_a_problem_bans_is_not_there_by_any_way(box: Box, name: str) -> None:
    problem = load_problem(PROBLEMS / "ch02-attention")
    free = dataclasses.replace(problem, banned=())
    assert judge(free, DETOURS[name], box=box, seed=3).accepted  # it is right, and would pass
    verdict = judge(problem, DETOURS[name], box=box, seed=3)
    assert verdict.code == "RE" and "bans" in verdict.message.en


def test_the_step_s_own_tests_can_take_an_ac_away(box: Box) -> None:
    problem = load_problem(PROBLEMS / "ch01-req-lengths")
    good = engine.reference(problem)
    assert judge(problem, good, box=box, seed=3).code == "AC"
    # The cases look at no repr; a test of the step does.
    place = engine.place_of(problem)
    test = "tests/test_ch01_core.py::test_repr_shows_who_and_how_far"
    stricter = problem.__class__(
        **(problem.__dict__ | {"step": place.__class__(1, place.path, place.symbols, (test,))})
    )
    assert judge(stricter, good, box=box, seed=3).code == "AC"
    bad = good.replace("Req(uid={self.uid}, ", "Req(")
    assert bad != good and judge(problem, bad, box=box, seed=3).code == "AC"
    verdict = judge(stricter, bad, box=box, seed=3)
    assert verdict.code == "WA" and "test_repr_shows_who" in verdict.message.en


@pytest.fixture(scope="module")
def readers_boxes(box: Box) -> Iterator[dict[bool, Box | None]]:
    """By `Problem.torch`: the boxes that `sessions.box_for` makes for a reader."""
    with sessions.box_with(torch=False) as plain:
        yield {True: box, False: plain}


@pytest.mark.parametrize("name", sorted(path.name for path in PROBLEMS.iterdir()))
def test_a_reader_s_box_is_enough_for_the_solution(
    name: str, readers_boxes: dict[bool, Box | None]
) -> None:
    """The audit's box once had torch loaded where a reader's had not."""
    problem = load_problem(PROBLEMS / name)
    box = readers_boxes[problem.torch]
    verdict = judge(problem, engine.solution(problem), box=box, seed=5)
    assert verdict.accepted, verdict


PLAUSIBLE = [
    ("ch02-attention", "one_maximum_for_all"),
    ("ch02-attention", "maximum_of_hidden_keys"),
    ("ch02-attention", "mask_of_minus_100"),
    ("ch02-attention", "mask_of_minus_10000"),
    ("ch02-merged-linear", "changes_x"),
    ("ch02-merged-linear", "products_joined_afterwards"),
    ("ch02-rope", "turns_the_caller_s_q"),
    ("ch03-qk-rows", "by_way_of_float16"),
    ("ch09-top-p", "sorts_in_python"),
    ("ch09-top-p", "multiplies_the_caller_s_top_p"),
    ("ch05-attend-bottom-right", "one_maximum_for_all"),
    ("ch05-attend-bottom-right", "mask_of_minus_100"),
    ("ch05-attend-bottom-right", "mask_of_minus_10000"),
    ("ch07-page-allocator", "freed_twice_unnoticed"),
    ("ch07-ragged-batch", "a_hit_makes_a_decode"),
    ("ch08-prefix-set", "calls_itself"),
    ("ch08-prefix-set", "keys_of_16_bits"),
    ("ch08-prefix-set", "first_and_last_token_decide"),
    ("ch08-radix-split", "only_the_last_node_is_used"),
]


@pytest.mark.parametrize(("problem", "mutant"), PLAUSIBLE)
def test_a_wrong_solution_that_looks_right_is_rejected(box: Box, problem: str, mutant: str) -> None:
    one = load_problem(PROBLEMS / problem)
    text = engine.variant(one, one.files("mutants")[f"{mutant}.py"])
    for seed in range(3):
        verdict = judge(one, text, box=box, seed=seed)
        assert verdict.code in ("WA", "RE"), f"seed {seed}: {verdict.code}"


def test_an_engine_problem_runs_in_the_tree_of_its_step(box: Box) -> None:
    problem = load_problem(PROBLEMS / "ch01-req-lengths")
    text = engine.reference(problem) + "\nimport minisgl\nprint(minisgl.__file__)\n"
    verdict = judge(problem, text + "raise ValueError(minisgl.__file__)\n", box=box, seed=3)
    assert verdict.message.en == "ValueError: minisgl/__init__.py"


def test_a_prediction_names_what_is_wrong_and_never_what_is_right() -> None:
    problem = load_problem(PROBLEMS / "ch01-predict-lengths")
    good = problem.read("solution.py")
    assert judge(problem, good, box=None, seed=1).accepted
    verdict = judge(problem, good.replace("kv_computed = 35", "kv_computed = 36"), box=None, seed=1)
    assert verdict.code == "WA" and verdict.expected == ""
    assert verdict.message.en == "kv_computed is not right; 6 of 7 answers are right"
    assert "35" not in str(verdict.as_json())
    unanswered = judge(problem, problem.read("starter.py"), box=None, seed=1)
    assert unanswered.message.en.startswith("admitted is not answered yet; 0 of 7")


def test_a_prediction_is_not_found_by_trying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path))
    monkeypatch.setenv("MINISGL_LANG", "en")
    problem = load_problem(PROBLEMS / "ch01-predict-lengths")
    good = problem.read("solution.py")
    now, tries = 1e9, 0
    monkeypatch.setattr(time, "time", lambda: now)
    with Progress() as progress:

        def submit(number: int) -> None:
            text = good.replace("kv_computed = 35", f"kv_computed = {number}")
            sessions.submit(problem, text.encode(), None, progress)

        began = now
        while tries < 60:
            with contextlib.suppress(sessions.TooSoon):
                submit(100 + tries)
                tries += 1
                continue
            now += 1
        assert now - began > 50 * LONGEST_WAIT_S
        with pytest.raises(sessions.TooSoon, match=f"in {LONGEST_WAIT_S:.0f} s"):
            submit(35)
        now -= 3600  # a clock that is set back shuts nobody out
        submit(35)
        assert progress.standing(problem.id).accepted
        for _ in range(5):  # and who has it may play with it
            submit(36)


def test_a_prediction_cannot_be_watched_nor_tried_on_a_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path))
    monkeypatch.setenv("MINISGL_LANG", "en")
    id = "ch01-predict-lengths"
    wrong = tmp_path / "wrong.py"
    wrong.write_text((PROBLEMS / id / "starter.py").read_text().replace("None", "1"))
    assert main(PROBLEMS.parents[1], "", ["run", id, str(wrong), "--seed", "3"]) == 0
    assert "7 of 7 questions are answered" in capsys.readouterr().out
    assert main(PROBLEMS.parents[1], "", ["watch", id]) == 2
    assert "nothing to try" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "import os\n",
        "a = open('x')\n",
        "a = b\n",
        "a = 2 ** 9\n",
        "a = 10 ** 6 * 10 ** 6\n",
        "a = [x for x in (1,)]\n",
        "a = 1 // 0\n",
        "a = 999999 * 9999999\n",
        "a = 'x' * 99999999\n",
        "a = 0x" + "f" * 200_000 + "\n",
        "a = " + "2*" * 1_500 + "1\n",
        "a = (x := 3)\n",
        "a, b = 1, 2\n",
        "def a(): pass\n",
    ],
)
def test_an_answer_file_is_never_run(text: str) -> None:
    with pytest.raises(Rejected) as caught:
        read_answers(text)
    assert caught.value.verdict.code == "CE" and caught.value.verdict.line == 1


def test_answers_may_be_written_as_arithmetic() -> None:
    found = read_answers(
        '"""Mine."""\na = 40 - 16\nb: tuple = (1, -2, [3 * 4])\nc = {"x": 7 % 4}\n'
    )
    assert {name: value for name, (value, _) in found.items()} == {
        "a": 24,
        "b": (1, -2, [12]),
        "c": {"x": 3},
    }


def test_the_form_of_a_prediction_says_nothing_of_its_answers() -> None:
    problem = load_problem(PROBLEMS / "ch01-predict-lengths")
    right = problem.read("solution.py")
    wrong = right.replace("1", "2")
    assert wrong != right
    said = [try_samples(problem, text, box=None, seed=1) for text in (right, wrong)]
    assert said[0] == said[1] and said[0].accepted and "7 of 7" in said[0].message.en
    assert "0 of 7" in try_samples(problem, problem.read("starter.py"), box=None, seed=1).message.en
    odd = try_samples(problem, right + "more = 1\n", box=None, seed=1)
    assert odd.code == "CE" and "no question called more" in odd.message.en


NEIGHBOURS = [
    one
    for one in load_catalogue(PROBLEMS.parents[1]).problems
    if one.step and engine.neighbours(one)
]


@pytest.mark.parametrize("problem", NEIGHBOURS, ids=lambda one: one.id)
def test_no_starter_holds_what_another_problem_asks_for(problem: Problem) -> None:
    start = engine.starter(problem)
    for other in engine.neighbours(problem):
        right = engine.reference(other)
        for symbol in engine._asked(other):
            one, another = (patches.function(text, symbol) for text in (start, right))
            assert not patches.same(one, another), symbol


@pytest.mark.parametrize("problem", NEIGHBOURS, ids=lambda one: one.id)
def test_what_a_starter_hides_is_there_when_it_is_judged(box: Box, problem: Problem) -> None:
    solved = start = engine.starter(problem)
    right, path = engine.reference(problem), engine.place_of(problem).path
    for symbol in engine._asked(problem):
        solved = patches.exchanged(solved, symbol, patches.function(right, symbol))
    assert judge(problem, solved, box=box, seed=5).accepted
    assert not judge(problem, start, box=box, seed=5).accepted
    for other in engine.neighbours(problem):  # an answer to one is none to another
        assert not judge(other, solved, box=box, seed=5).accepted
    for symbol in engine.hidden(problem):  # what the reader has written there himself counts
        own = f"def {symbol.rpartition('.')[2]}(*args, **kwargs):\n    raise OSError\n"
        for text, is_left in ((solved, True), (patches.exchanged(solved, symbol, own), False)):
            judged = engine.box_files(problem, text)[path]
            assert judged.startswith(text)
            assert (patches.function(right, symbol) in judged[len(text) :]) == is_left


def test_there_are_files_with_several_problems() -> None:
    assert len(NEIGHBOURS) >= 6


def test_a_planted_fault_does_not_show_in_the_header() -> None:
    """A method without the annotations that all others have would be the answer."""
    for problem in load_catalogue(PROBLEMS.parents[1]).problems:
        if problem.kind == "bug":
            right, planted = (
                dict(scopes(parse(text, problem.id).body))
                for text in (engine.reference(problem), problem.read("mutants/planted.py"))
            )
            for name, node in planted.items():
                if isinstance(node, Function) and name in right:
                    assert _header(node) == _header(right[name]), (problem.id, name)


def _header(node: ast.AST) -> str:
    assert isinstance(node, Function)
    return f"{ast.unparse(node.args)} -> {node.returns and ast.unparse(node.returns)}"
