"""`steps.py check` on a miniature book: each rule has a test in which breaking it is caught."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from minibook import BOX_1, MiniBook, make_book

from tools.devlib.stages import closing_line
from tools.steplib import check, load_steps
from tools.steplib.check import Checker, Finding
from tools.steplib.earlycode import code_problems, promise_problems, promises_to_come
from tools.steplib.run import environment, side_by_side
from tools.steplib.storage import storage_problems


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole book of which everything is proved and known to the cache."""
    book = make_book(tmp_path_factory.mktemp("whole"))
    assert problems(book) == []
    return book.root


@pytest.fixture
def book(checked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MiniBook:
    """A copy of the proved book, to break something in."""
    monkeypatch.delenv("CI", raising=False)
    shutil.copytree(checked, tmp_path / "book")
    return MiniBook(tmp_path / "book")


def findings(book: MiniBook, *numbers: int, forced: bool = False) -> list[Finding]:
    loaded = load_steps(book.root)
    checker = Checker(loaded, forced=forced)
    return [*checker.check(numbers or [step.number for step in loaded])]


def problems(book: MiniBook, *numbers: int) -> list[str]:
    loaded = load_steps(book.root)
    found = [*storage_problems(loaded), *promise_problems(loaded)]
    for one in findings(book, *numbers):
        found += one.problems
    return found


def code_problems_of(book: MiniBook, number: int) -> list[str]:
    loaded = load_steps(book.root)
    return list(code_problems(loaded, number, check.assemble(loaded, number)))


def static_problems(book: MiniBook) -> list[str]:
    loaded = load_steps(book.root)
    return [*storage_problems(loaded), *promise_problems(loaded)]


def count_runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Record the test files of each pytest run and the mains of each other run."""
    runs: list[list[str]] = []
    run_tests, run_main = check.run_tests, check.run_main

    def counted_tests(python, tree, tests, slow_files=(), **more):  # type: ignore[no-untyped-def]
        runs.append(list(tests))
        return run_tests(python, tree, tests, slow_files, **more)

    def counted_main(python, tree, main, language):  # type: ignore[no-untyped-def]
        runs.append([f"{main} {language}"])
        return run_main(python, tree, main, language)

    monkeypatch.setattr(check, "run_tests", counted_tests)
    monkeypatch.setattr(check, "run_main", counted_main)
    return runs


# Rule 1: every version stored once, where it belongs


@pytest.mark.parametrize(
    ("breaking", "message"),
    [
        (lambda b: b.write("minisgl/extra.py", ""), "minisgl/extra.py is in no step's tree"),
        (lambda b: b.write("steps/ch01_box/minisgl/pile.py", ""), "pile.py belongs to no step"),
        (lambda b: b.write("steps/ch01_box/notes.md", ""), "notes.md belongs to no step"),
        (
            lambda b: b.remove("steps/ch01_box/minisgl/box.py"),
            "mkdir -p steps/ch01_box/minisgl && "
            "git show HEAD:minisgl/box.py > steps/ch01_box/minisgl/box.py",
        ),
        (lambda b: b.write("minisgl/box.py", BOX_1.lstrip()), "equal to the version before it"),
        (lambda b: b.remove("minisgl/pile.py"), "ch03: minisgl/pile.py is missing"),
        (
            lambda b: b.replace("steps/ch03_pile/step.toml", "minisgl/stack.py", "minisgl/heap.py"),
            "removes minisgl/heap.py, which is not in the tree",
        ),
        (lambda b: b.remove("examples/ch03_pile.py"), "names examples/ch03_pile.py, which does"),
        (
            lambda b: b.replace("steps/ch02_stack/step.toml", "::test_takes_the_first", "::test_x"),
            "`retires` names tests/test_ch01_box.py::test_x, which does not exist",
        ),
        (lambda b: (b.root / "steps/ch02_stack").rename(b.root / "gone"), "no chapter 02 before"),
    ],
)
def test_storage(book: MiniBook, breaking: Callable[[MiniBook], object], message: str) -> None:
    assert static_problems(book) == []
    breaking(book)
    assert any(message in problem for problem in static_problems(book))


def test_removed_file_that_still_lies_in_the_package(book: MiniBook) -> None:
    stored = book.root / "steps/ch02_stack/minisgl/stack.py"
    stored.rename(book.root / "minisgl/stack.py")
    found = static_problems(book)
    assert any("git mv minisgl/stack.py steps/ch02_stack/minisgl/stack.py" in p for p in found)


# Rule 2: no early code


@pytest.mark.parametrize(
    ("path", "text", "number", "message"),
    [
        ("minisgl/pile.py", "\nimport minisgl.heap\n", 3, "minisgl.heap is not in the tree"),
        ("minisgl/pile.py", "\nfrom minisgl.box import Lid\n", 3, "minisgl.box.Lid is not in"),
        ("minisgl/pile.py", "\nfrom .stack import stack_of\n", 3, "minisgl.stack.stack_of is not"),
        ("minisgl/pile.py", "\ndef idle() -> None:\n    idle()\n", 3, "idle: nothing uses it"),
        ("minisgl/pile.py", "\nIDLE = 3\n", 3, "IDLE: nothing uses it"),
        ("minisgl/pile.py", "\n    def idle(self) -> None: ...\n", 3, "Pile.idle: nothing uses it"),
        ("minisgl/pile.py", "\n    idle: int = 3\n", 3, "Pile.idle: nothing uses it"),
        ("steps/ch01_box/minisgl/box.py", "\n\ndef stack_of() -> None: ...\n", 1, "only ch02 uses"),
    ],
)
def test_early_code(book: MiniBook, path: str, text: str, number: int, message: str) -> None:
    book.append(path, text)
    assert any(message in problem for problem in code_problems_of(book, number))


def test_attribute_that_is_set_and_never_read(book: MiniBook) -> None:
    book.replace("minisgl/pile.py", "self.count += 1", "self.count += 1\n        self.idle = 1")
    assert any("Pile.idle: nothing uses it" in problem for problem in code_problems_of(book, 3))


def test_file_that_nothing_reaches(book: MiniBook) -> None:
    book.write("minisgl/heap.py", '"""Nothing."""\n')
    more = '"minisgl/pile.py", "minisgl/heap.py"'
    book.replace("steps/ch03_pile/step.toml", '"minisgl/pile.py"', more)
    assert any("minisgl/heap.py is not reached" in problem for problem in code_problems_of(book, 3))


def test_data_files_and_entry_points_are_reached_by_name(book: MiniBook) -> None:
    book.write("minisgl/heap.cpp", "int heap;\n")
    book.write("minisgl/__main__.py", "print(1)\n")
    added = '"minisgl/pile.py", "minisgl/heap.cpp", "minisgl/__main__.py"'
    book.replace("steps/ch03_pile/step.toml", '"minisgl/pile.py"', added)
    assert len([one for one in code_problems_of(book, 3) if "is not reached" in one]) == 2
    book.append("tests/test_ch03_pile.py", '\nNAMED = ["heap.cpp", "python", "-m", "minisgl"]\n')
    assert not [one for one in code_problems_of(book, 3) if "is not reached" in one]


# [ahead]: names that the first version has for later chapters


AHEAD = """
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minisgl.heap import Heap


class Holder:
    heap: Heap
    size: int


HOLDERS: list[Holder] = []
"""


def with_ahead(book: MiniBook, chapter: int, *, after: str = "") -> None:
    """Chapter 1 gets a file that names a class and a field of `chapter`."""
    book.write("minisgl/holder.py", AHEAD.lstrip() + after)
    book.append("examples/ch01_box.py", "\nfrom minisgl.holder import HOLDERS\n\nHOLDERS.sort()\n")
    book.append("tests/test_ch03_pile.py", "\nfrom minisgl.holder import HOLDERS\n")
    book.append("tests/test_ch01_box.py", "\nfrom minisgl.holder import HOLDERS\n")
    more = '"minisgl/box.py", "minisgl/holder.py"'
    book.replace("steps/ch01_box/step.toml", '"minisgl/box.py"', more)
    names = ("minisgl.heap.Heap", "minisgl.holder.Holder.heap", "minisgl.holder.Holder.size")
    lines = [f'"{name}" = {chapter}' for name in names]
    book.append("steps/ch01_box/step.toml", "\n".join(["[ahead]", *lines, ""]))


def of_ahead(book: MiniBook, number: int) -> list[str]:
    words = ("ahead", "heap", "Heap", "size", "waits for")
    found = [*static_problems(book), *code_problems_of(book, number)]
    return [one for one in found if any(word in one for word in words)]


def test_ahead_allows_annotations_until_the_chapter_comes(book: MiniBook) -> None:
    with_ahead(book, 9)
    assert of_ahead(book, 1) == []
    assert promises_to_come(load_steps(book.root)) == {
        "minisgl.heap.Heap": 9,
        "minisgl.holder.Holder.heap": 9,
        "minisgl.holder.Holder.size": 9,
    }


def test_ahead_is_a_promise_that_its_chapter_keeps(book: MiniBook) -> None:
    with_ahead(book, 3)
    found = of_ahead(book, 3)
    assert "[ahead] minisgl.heap.Heap: chapter 3 does not bring it" in found
    assert "[ahead] minisgl.holder.Holder.size: chapter 3 does not bring it" in found
    assert any("minisgl.heap.Heap is not in the tree" in one for one in found)


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("\nEMPTY = Heap\n", "Heap is allowed ahead in annotations only"),
        ("\nfrom minisgl.heap import Heap\n", "minisgl.heap.Heap is allowed ahead in annotations"),
    ],
)
def test_ahead_allows_no_more_than_annotations(book: MiniBook, after: str, message: str) -> None:
    with_ahead(book, 9, after=after)
    assert any(message in one for one in of_ahead(book, 1))


def test_a_field_is_not_used_before_its_chapter(book: MiniBook) -> None:
    with_ahead(book, 9)
    book.append("minisgl/pile.py", "\n\ndef fill(pile: Pile) -> None:\n    pile.size = 3\n")
    assert any("Holder.size waits for chapter 9" in one for one in of_ahead(book, 3))


def test_ahead_excuses_no_method(book: MiniBook) -> None:
    book.append("steps/ch01_box/minisgl/box.py", "\n    def spare(self) -> None: ...\n")
    book.append("steps/ch01_box/step.toml", '[ahead]\n"minisgl.box.Box.spare" = 9\n')
    assert any(
        "[ahead] can excuse a field, not Box.spare" in one for one in code_problems_of(book, 1)
    )


def test_ahead_that_the_step_does_not_name(book: MiniBook) -> None:
    book.append("steps/ch01_box/step.toml", '[ahead]\n"minisgl.box.Lid" = 9\n')
    assert "[ahead] minisgl.box.Lid: the step does not name it" in code_problems_of(book, 1)


# Rule 3: mains print what is recorded, tests pass


def test_main_that_prints_something_else(book: MiniBook) -> None:
    book.append("examples/ch03_pile.py", '\nprint(_step.tr("新", "new"))\n')
    found = problems(book, 3)
    assert any("(zh) prints something else" in one and "+新" in one for one in found)
    assert any("(en) prints something else" in one and "+new" in one for one in found)


def test_measured_figures_may_differ(book: MiniBook) -> None:
    book.replace("examples/ch00_script.py", "measured(0.5)", "measured(99.25)")
    assert problems(book, 0) == []


def test_main_that_fails(book: MiniBook) -> None:
    book.append("examples/ch03_pile.py", "\nraise SystemExit('broken')\n")
    assert any("exit status 1\n" in one and "broken" in one for one in problems(book, 3))


def test_output_that_is_not_recorded(book: MiniBook) -> None:
    book.remove("steps/ch02_stack/expected.en.txt")
    assert "python3 tools/steps.py record 2" in problems(book, 2)[0]


def test_readme_that_is_not_current(book: MiniBook) -> None:
    book.append("steps/ch01_box/README.md", "more\n")
    assert "README.md is not current: python3 tools/steps.py record 1" in problems(book, 1)


def test_change_that_breaks_an_earlier_test(book: MiniBook) -> None:
    book.replace("minisgl/box.py", "append(thing)", "append(-thing)")
    found = problems(book, 3)
    assert any("test_ch01_box.py::test_holds_what_is_put: failed" in one for one in found)
    assert not any("test_takes_the_first: failed" in one for one in found)  # ch02 retires it


def test_test_that_nobody_retires_still_counts(book: MiniBook) -> None:
    text = book.read("steps/ch02_stack/step.toml").split("[[retires]]")[0]
    book.write("steps/ch02_stack/step.toml", text)
    assert any("test_takes_the_first: failed" in one for one in problems(book, 2))


def test_file_without_a_test(book: MiniBook) -> None:
    book.write("tests/test_ch03_pile.py", "from minisgl.pile import Pile\n")
    found = problems(book, 3)
    assert "tests/test_ch03_pile.py: no test ran" in found
    assert "red before green: no test ran" in found


def test_slow_tests_run_at_their_own_step_and_at_the_last(book: MiniBook) -> None:
    assert [findings(book, number, forced=True)[0].tests for number in (1, 2, 3)] == [5, 4, 5]
    # The files of the two last steps are equal to this test: together, one run serves both.
    assert [found.tests for found in findings(book, 1, 2, 3, forced=True)] == [5, 5, 5]
    book.replace("tests/test_ch01_box.py", "in (0, 999)", "is None")
    found = [findings(book, number)[0].problems for number in range(4)]
    assert ["test_many" in str(problems) for problems in found] == [False, True, False, True]


# Rule 4: red before green


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("def test_idle():\n    assert Pile\n", "test_idle passes before anything is written"),
        (
            "import pytest\n\n\n@pytest.fixture\ndef pile():\n    return Pile()\n\n\n"
            "def test_idle(pile):\n    assert pile\n",
            "test_idle fails in setup, not in its own body",
        ),
        ("PILE = Pile()\n", "red before green: tests/test_ch03_pile.py: "),
        (
            "import pytest\n\n\n@pytest.mark.guard\ndef test_idle():\n    assert Pile\n",
            "1 of 2 tests are guards",
        ),
    ],
)
def test_red_before_green(book: MiniBook, test: str, message: str) -> None:
    book.append("tests/test_ch03_pile.py", "\n\n" + test)
    assert any(message in problem for problem in problems(book, 3))


def test_what_the_old_code_passes_is_no_proof_of_the_new(book: MiniBook) -> None:
    """A reader keeps what he has of a function that the chapter changes."""
    old = "\n\ndef test_old():\n    from minisgl.box import Box\n\n"
    old += "    box = Box()\n    box.put(1)\n    assert box.take() == 1\n"
    book.append("tests/test_ch02_stack.py", old)
    assert any("test_old passes before anything" in problem for problem in problems(book, 2))


def test_a_third_of_the_tests_may_be_guards(book: MiniBook) -> None:
    assert [(found.red, found.guards) for found in findings(book)] == [
        (1, 0),
        (3, 1),
        (1, 0),
        (1, 0),
    ]


# Rule 5: the budget


def test_budget(book: MiniBook) -> None:
    lines = "\n".join(f'TABLE["{number}"] = {number}' for number in range(360))
    table = f"\n\n# a table\nTABLE = {{}}\n\n{lines}\nprint(end=str(TABLE)[:0])\n"
    book.append("minisgl/pile.py", table)
    assert any("370 new or changed lines of code, 350 are" in one for one in problems(book, 3))
    book.replace("steps/ch03_pile/step.toml", "concept =", 'overrun = "a table"\nconcept =')
    assert not any("lines of code" in one for one in problems(book, 3))


# Rule 6: skipped tests prove nothing


SKIP = """

import pytest


@pytest.mark.skip(reason="needs a forge")
def test_forge():
    {}
"""


def test_skips_are_named_and_forbidden_in_ci(
    book: MiniBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.append("tests/test_ch03_pile.py", SKIP.format("assert Pile().forge()"))
    found = findings(book, 3)[0]
    name = "tests/test_ch03_pile.py::test_forge"
    assert found.problems == [] and found.skipped == {name: "needs a forge"}
    monkeypatch.setenv("CI", "true")
    assert findings(book, 3)[0].problems == [f"{name} is skipped in CI"]


def test_all_skipped_is_a_failure(book: MiniBook) -> None:
    text = SKIP.format("assert Pile").lstrip()
    book.write("tests/test_ch03_pile.py", f"from minisgl.pile import Pile\n{text}")
    assert any("every test is skipped" in one for one in problems(book, 3))


# A step's runs see the step and nothing else


def test_poisoned_package_does_not_matter_to_a_built_step(
    book: MiniBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_steps(book.root)
    files = check.assemble(loaded, 3)
    tree = check.store(loaded, 3, files)
    for path in ("__init__.py", "box.py", "pile.py"):
        book.write(f"minisgl/{path}", "raise RuntimeError('the shipped package was imported')\n")
    # What an editable install does: the repository is on the path of every process.
    monkeypatch.setenv("PYTHONPATH", str(book.root))
    monkeypatch.setenv("MINISGL_TREE", str(book.root))
    monkeypatch.chdir(book.root)
    tests = [path for path in files if path.startswith("tests/test_")]
    report = check.run_tests(check.python(book.root), tree, tests)
    assert {test.outcome for test in report.tests.values()} == {"passed"}
    assert check.run_main(check.python(book.root), tree, "examples/ch03_pile.py", "zh").status == 0


WHO = """
import os, sys

print(__name__, __file__, os.getcwd(), os.getsid(0) == os.getpid(), sys.stdin.read(), sys.path)
print("colorsys" in sys.modules, sorted(os.environ.items()))
os.environ["LEFT"] = "behind"
import colorsys
sys.exit("as it ends")
"""


def test_a_run_is_what_python_itself_would_start(book: MiniBook) -> None:
    loaded = load_steps(book.root)
    tree = check.store(loaded, 3, check.assemble(loaded, 3))
    (tree / "who.py").write_text(WHO)
    with side_by_side(sys.executable) as pool:
        plain = subprocess.run(
            [sys.executable, "who.py"],
            cwd=tree,
            env=environment(tree, "zh") | {"OMP_WAIT_POLICY": "PASSIVE"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
        )
        for _ in range(3):
            ended = pool.submit(check.run_main, sys.executable, tree, "who.py", "zh").result()
            assert (ended.status, ended.output) == (plain.returncode, plain.stdout)
            assert ended.errors == plain.stderr


def test_conftest_notices_a_package_from_elsewhere(book: MiniBook) -> None:
    book.append(
        "tests/test_ch03_pile.py",
        "\n\ndef test_elsewhere():\n    import sys\n    Pile()\n"
        "    sys.modules['minisgl'].__file__ = '/elsewhere/minisgl/__init__.py'\n",
    )
    assert any("minisgl was imported from /elsewhere" in one for one in problems(book, 3))


# Runs side by side


MEET = """
import os, pathlib, time

mine, other = ("zh", "en")[:: 1 if os.environ["MINISGL_LANG"] == "zh" else -1]
pathlib.Path(mine).touch()
for _ in range(600):
    if pathlib.Path(other).exists():
        break
    time.sleep(0.05)
else:
    raise SystemExit("alone")
"""


def test_two_runs_go_side_by_side_and_findings_come_in_order(book: MiniBook) -> None:
    book.append("examples/ch01_box.py", MEET)
    found = findings(book, 2, 3, 1)
    assert [(one.step.number, one.problems) for one in found] == [(2, []), (3, []), (1, [])]


def test_runs_share_the_processors_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.steplib.run.usable_cpus", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with side_by_side(sys.executable) as pool:
        assert pool.submit(os.getenv, "OMP_NUM_THREADS").result() == "3"
    assert "OMP_NUM_THREADS" not in os.environ
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    with side_by_side(sys.executable) as pool:
        assert pool.submit(os.getenv, "OMP_NUM_THREADS").result() == "5"


# What the last step's check has proved need not run at the root


def at_the_root(book: MiniBook, *more: str) -> str:
    """What pytest prints at the root of the book, to which a test of no chapter is added."""
    book.write("tests/test_all.py", "def test_all():\n    pass\n")
    command = [sys.executable, "-m", "pytest", *more]
    return subprocess.run(command, cwd=book.root, capture_output=True, text=True).stdout


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_the_root_leaves_out_what_is_proved(book: MiniBook, workers: list[str]) -> None:
    shown = at_the_root(book, "--without-proved", *workers)
    assert "5 results known from the last step's check\n" in shown
    assert closing_line(shown).startswith("=") and " 1 passed in " in closing_line(shown)
    assert " 6 passed" in closing_line(at_the_root(book))


def test_the_root_runs_what_is_not_proved_on_what_lies_there(book: MiniBook) -> None:
    book.append("minisgl/pile.py", "\n# more\n")
    shown = at_the_root(book, "--without-proved")
    assert "4 results known" in shown and " 2 passed" in closing_line(shown)
    book.append("tests/test_ch01_box.py", SKIP.format("pass"))  # with a skip, not all is proved
    assert problems(book, 3) == []
    shown = at_the_root(book, "--without-proved")
    assert "2 results known" in shown and " 4 passed, 1 skipped" in closing_line(shown)
    book.write("minisgl/extra.py", "")  # the package is not the last step
    shown = at_the_root(book, "--without-proved")
    assert "known" not in shown and " 6 passed, 1 skipped" in closing_line(shown)


# The cache


def test_nothing_runs_twice(book: MiniBook, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = count_runs(monkeypatch)
    assert problems(book) == [] and runs == []
    findings(book, 0, forced=True)
    assert sorted(runs) == [
        ["examples/ch00_script.py en"],
        ["examples/ch00_script.py zh"],
        ["tests/test_ch00_script.py"],
        ["tests/test_ch00_script.py"],
    ]


def test_a_change_runs_what_depends_on_it(book: MiniBook, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = count_runs(monkeypatch)
    book.append("minisgl/pile.py", "\n# more\n")
    assert problems(book) == []
    mains = [["examples/ch03_pile.py en"], ["examples/ch03_pile.py zh"]]
    assert sorted(runs) == [*mains, ["tests/test_ch03_pile.py"], ["tests/test_ch03_pile.py"]]


@pytest.mark.parametrize("path", ["tests/conftest.py", "tests/helper_of_tests.py"])
def test_a_helper_of_tests_counts(
    book: MiniBook, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = count_runs(monkeypatch)
    book.append(path, "\n# more\n")
    assert problems(book, 0) == []
    assert ["tests/test_ch00_script.py"] in runs


def test_a_retirement_elsewhere_runs_nothing_again(
    book: MiniBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = count_runs(monkeypatch)
    book.replace("steps/ch02_stack/step.toml", "why = ", 'why = "another reason" #')
    assert problems(book) == []
    # Only the file of the retired test, once for the two steps at which it is.
    assert runs == [["tests/test_ch01_box.py"]]


def test_a_failure_is_not_remembered(book: MiniBook) -> None:
    book.replace("tests/test_ch03_pile.py", "== 1", "== 2")
    assert any("test_counts: failed" in one for one in problems(book, 3))
    assert any("test_counts: failed" in one for one in problems(book, 3))
