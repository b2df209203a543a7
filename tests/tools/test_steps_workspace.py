"""A reader's way through a chapter: `start`, write, `verify`, and go on from one's own work."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from minibook import BOX_1, MiniBook, make_book

from tools.steplib import load_steps, package_files
from tools.steplib import verify as verifying
from tools.steplib.build import write_files
from tools.steplib.commands import main
from tools.steplib.live import Live
from tools.steplib.storage import storage_problems
from tools.steplib.verify import verify
from tools.steplib.workspace import start
from tools.store import Store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MiniBook:
    monkeypatch.setenv("MINISGL_LANG", "en")
    return make_book(tmp_path / "book")


def steps(book: MiniBook, *arguments: str) -> int:
    return main(book.root, "", arguments)


def test_start_gives_the_step_before_and_the_stubs(
    book: MiniBook, capsys: pytest.CaptureFixture[str]
) -> None:
    assert steps(book, "start", "2") == 0
    box = book.read("workspace/ch02_stack/minisgl/box.py")
    changed = '"""Remove the last thing."""\n        # chapter 2: change Box.take\n'
    assert f"{changed}        return self._things.pop(0)" in box
    assert "self._things.append(thing)" in box  # unchanged since chapter 1
    stack = book.read("workspace/ch02_stack/minisgl/stack.py")
    assert stack.endswith('    raise NotImplementedError("chapter 2: stack_of")\n')
    shown = capsys.readouterr().out
    assert "functions to write: 1; to change: 1" in shown
    assert "change minisgl/box.py:17  Box.take" in shown
    assert "write minisgl/stack.py:8  stack_of" in shown
    assert "python3 tools/steps.py verify 2" in shown
    settings = json.loads(book.read("workspace/ch02_stack/.vscode/settings.json"))
    assert settings["python.defaultInterpreterPath"] == f"{book.root}/.venv/bin/python"


def test_a_file_saved_in_the_workspace_runs_on_its_code(
    book: MiniBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MINISGL_TREE", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    steps(book, "start", "2")
    book.write("workspace/ch02_stack/try.py", "import minisgl.box\nprint(minisgl.box.__file__)\n")
    mine = book.root / "workspace/ch02_stack"
    said = subprocess.check_output([sys.executable, "try.py"], cwd=mine, text=True)
    assert said == f"{mine}/minisgl/box.py\n"


def test_chapter_without_package_code_has_its_main_to_write(book: MiniBook) -> None:
    steps(book, "start", "0")
    script = book.read("workspace/ch00_script/examples/ch00_script.py")
    assert 'raise NotImplementedError("chapter 0: double")' in script
    assert "print(_step.tr(" in script


def test_verify_says_what_is_red_and_what_to_do(
    book: MiniBook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(book.root / "home"))
    steps(book, "start", "2")
    capsys.readouterr()
    assert steps(book, "verify", "2") == 1
    shown = capsys.readouterr().out
    name = "tests/test_ch02_stack.py::test_takes_the_last"
    assert shown.splitlines() == [
        f"chapter 02, code in {book.root}/workspace/ch02_stack",
        f"✗ {name}: NotImplementedError: chapter 2: stack_of",
        "chapter 02: 0 of 1",
        "not written yet: stack.py 1",
        "marked as to be changed: box.py 1",
        f"make this one green first: {name}",
        "    NotImplementedError: chapter 2: stack_of  (minisgl/stack.py:8)",
        "    tests/test_ch02_stack.py:5: assert stack_of(1, 2).take() == 2",
        f"    cd {book.root}/workspace/ch02_stack && {sys.executable} -m pytest {name}",
    ]
    assert not (book.root / "home").exists()


def test_verify_passes_and_notes_it(
    book: MiniBook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(book.root / "home"))
    steps(book, "start", "2")
    mine = book.root / "workspace/ch02_stack"
    for path in ("minisgl/box.py", "steps/ch02_stack/minisgl/stack.py"):
        (mine / "minisgl" / Path(path).name).write_text(book.read(path))
    (mine / "tests/test_ch02_stack.py").write_text("def test_nothing():\n    pass\n")
    assert steps(book, "verify", "2") == 0
    shown = capsys.readouterr().out
    assert "✓ tests/test_ch02_stack.py::test_takes_the_last" in shown  # copied afresh
    assert "✓ tests/test_ch01_box.py::test_holds_what_is_put" in shown  # earlier tests count
    assert f"next: python3 tools/steps.py start 3 --from {mine}" in shown
    with Store() as store:  # the judge's progress
        assert [row["step"] for row in store.rows("SELECT * FROM steps")] == [2]
    capsys.readouterr()
    assert steps(book) == 0
    assert "\nNext: 03 Title ch03_pile\n" in capsys.readouterr().out


def test_verify_is_red_when_an_earlier_test_breaks(
    book: MiniBook, capsys: pytest.CaptureFixture[str]
) -> None:
    steps(book, "start", "2")
    mine = book.root / "workspace/ch02_stack/minisgl"
    (mine / "box.py").write_text(book.read("minisgl/box.py").replace("pop()", "pop() and 7"))
    (mine / "stack.py").write_text("stack_of = lambda *a: type('S', (), {'take': lambda s: 2})()\n")
    assert steps(book, "verify", "2") == 1
    shown = capsys.readouterr().out
    assert "✓ tests/test_ch02_stack.py::test_takes_the_last" in shown
    assert "chapter 02: 1 of 1; now the earlier chapters" in shown
    assert "✗ tests/test_ch01_box.py::test_holds_what_is_put" in shown
    assert "regression: this chapter passes, 1 of the earlier tests no longer do" in shown


def written(book: MiniBook, text: str) -> None:
    """Chapter 2 with `box.py` as it is to be, and this `stack.py`."""
    steps(book, "start", "2")
    mine = book.root / "workspace/ch02_stack/minisgl"
    (mine / "box.py").write_text(book.read("minisgl/box.py"))
    (mine / "stack.py").write_text(text)


def test_verify_shows_what_was_expected_beside_what_it_got(
    book: MiniBook, capsys: pytest.CaptureFixture[str]
) -> None:
    written(book, "class stack_of:\n    def __init__(self, *a): pass\n    take = lambda s: 3\n")
    capsys.readouterr()
    assert steps(book, "verify", "2") == 1
    shown = capsys.readouterr().out
    assert "    expected: 2\n    got: 3\n    +  where 3 = <lambda>()\n" in shown


def test_verify_shows_what_pytest_says_of_the_values(
    book: MiniBook, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below a message of the test's own, and of what is too long to be shown whole."""
    book.append(
        "tests/test_ch02_stack.py",
        "\n\ndef test_large():\n    assert list(range(99)) == [*range(98), 7], 'not all of them'\n",
    )
    written(book, book.read("steps/ch02_stack/minisgl/stack.py"))
    capsys.readouterr()
    assert steps(book, "verify", "2") == 1
    shown = capsys.readouterr().out
    assert "\n    AssertionError: not all of them\n" in shown
    assert "\n    At index 98 diff: 98 != 7\n" in shown


def test_verify_says_where_a_syntax_error_is(
    book: MiniBook, capsys: pytest.CaptureFixture[str]
) -> None:
    written(book, "def stack_of(*things)\n    return 1\n")
    assert steps(book, "verify", "2") == 1
    place = "minisgl/stack.py:1: SyntaxError: expected ':'"
    shown = capsys.readouterr().out
    assert f"✗ tests/test_ch02_stack.py: {place}" in shown
    assert f"make this one green first: tests/test_ch02_stack.py\n    {place}" in shown


@pytest.mark.parametrize(
    "loop", ["while True: pass", "(c := __import__('threading').Lock()).acquire(); c.acquire()"]
)
def test_verify_stops_a_test_that_does_not_end(
    book: MiniBook,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    loop: str,
) -> None:
    monkeypatch.setattr("tools.steplib.verify.SECONDS", 1)
    body = f"    try:\n        {loop}\n    except Exception:\n        pass\n"
    written(book, f"def stack_of(*things):\n{body}")
    assert steps(book, "verify", "2") == 1
    name = "tests/test_ch02_stack.py::test_takes_the_last"
    assert f"✗ {name}: Failed: no end after 1 s  (minisgl/stack.py:3)" in capsys.readouterr().out
    written_over = f"{loop}\n"
    (book.root / "workspace/ch02_stack/minisgl/stack.py").write_text(written_over)
    assert steps(book, "verify", "2") == 1
    assert "test_ch02_stack.py: minisgl/stack.py:1: Failed: no end" in capsys.readouterr().out


def test_code_that_never_comes_back_to_python_is_stopped(
    book: MiniBook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.steplib.verify.SECONDS", 1)
    monkeypatch.setattr("tools.steplib.run.GRACE_SECONDS", 1)
    deaf = "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
    written(book, f"def stack_of(*things):\n    {deaf.replace(chr(10), '; ')}time.sleep(99)\n")
    assert steps(book, "verify", "2") == 1
    name = "tests/test_ch02_stack.py::test_takes_the_last"
    shown = capsys.readouterr().out
    assert f"make this one green first: {name}\n    it did not end and was stopped" in shown


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The test files of each run that `verify` makes."""
    found: list[list[str]] = []
    run_tests = verifying.run_tests

    def counted(python: str, tree: Path, tests: list[str], *more: Any, **options: Any) -> Any:
        found.append(list(tests))
        return run_tests(python, tree, tests, *more, **options)

    monkeypatch.setattr(verifying, "run_tests", counted)
    return found


OWN, BOX, SCRIPT = (f"tests/test_ch0{name}.py" for name in ("2_stack", "1_box", "0_script"))


def test_verify_runs_again_only_what_can_have_changed(
    book: MiniBook,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    runs: list[list[str]],
) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(book.root / "home"))
    written(book, book.read("steps/ch02_stack/minisgl/stack.py"))
    lazy = "def __getattr__(name):\n    from minisgl import stack\n    return stack\n"
    book.write("workspace/ch02_stack/minisgl/__init__.py", lazy)
    stack = book.root / "workspace/ch02_stack/minisgl/stack.py"
    for change, expected in (
        (None, [[OWN], [SCRIPT, BOX]]),
        (None, []),
        ("# more\n", [[OWN]]),
        ("THINGS = 1 / 0\n", [[OWN]]),
        ("THINGS = 1 / 0\n", [[OWN]]),
    ):
        runs.clear()
        if change:
            stack.write_text(book.read("steps/ch02_stack/minisgl/stack.py") + change)
        assert steps(book, "verify", "2") == ("1 / 0" in (change or ""))
        assert runs == expected
    assert "✓ tests/test_ch01_box.py::test_holds_what_is_put" in capsys.readouterr().out


def test_an_interrupt_keeps_what_has_passed(
    book: MiniBook,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    runs: list[list[str]],
) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(book.root / "home"))
    written(book, book.read("steps/ch02_stack/minisgl/stack.py"))

    def interrupted(live: Live, name: str, test: Any) -> None:
        if name.endswith("::test_holds_what_is_put"):
            raise KeyboardInterrupt
        shown(live, name, test)

    shown = Live._test
    with monkeypatch.context() as patch:
        patch.setattr(Live, "_test", interrupted)
        assert steps(book, "verify", "2") == 130
    assert "stopped at 1/3; run it again to go on" in capsys.readouterr().out
    assert steps(book, "verify", "2") == 0
    assert runs == [[OWN], [SCRIPT, BOX], [BOX]]


def test_large_tests_wait_until_the_small_ones_pass(
    book: MiniBook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(book.root / "home"))
    small = book.read("tests/test_ch02_stack.py")
    large = "import pytest\n\n\n@pytest.mark.slow\ndef test_large():\n    assert stack_of(1)\n\n\n"
    book.write("tests/test_ch02_stack.py", large + small)
    wrong = "stack_of = lambda *a: type('S', (), {'take': lambda s: 3})()\n"
    written(book, wrong)
    for text, passes in ((wrong, False), (book.read("steps/ch02_stack/minisgl/stack.py"), True)):
        book.write("workspace/ch02_stack/minisgl/stack.py", text)
        assert steps(book, "verify", "2") == (not passes)
        shown = capsys.readouterr().out
        assert ("::test_large" in shown) == passes
        assert ("1 larger tests wait" in shown) != passes


@pytest.mark.slow
def test_the_books_own_code_passes_in_a_workspace(tmp_path: Path) -> None:
    """A folder of the reader's own is no built step, which is where `check` runs the tests."""
    book = load_steps(ROOT)
    start(book, 1, tmp_path)
    write_files(package_files(book, 1), tmp_path)
    assert verify(book, 1, tmp_path, lambda told: None).passed


def test_a_new_start_keeps_the_old_folder_aside(
    book: MiniBook, capsys: pytest.CaptureFixture[str]
) -> None:
    written(book, "# mine\n")
    assert steps(book, "start", "2") == 2
    assert "--again" in capsys.readouterr().err
    assert steps(book, "start", "2", "--again") == 0
    new, old = sorted((book.root / "workspace").iterdir())
    assert "# mine" not in (new / "minisgl/stack.py").read_text()
    assert (old / "minisgl/stack.py").read_text() == "# mine\n"
    assert old.name in capsys.readouterr().out


def test_without_a_command_it_says_where_one_stands(
    book: MiniBook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(book.root / "home"))
    monkeypatch.chdir(book.root)

    def said() -> list[str]:
        capsys.readouterr()
        assert steps(book) == 0
        return capsys.readouterr().out.splitlines()

    assert said()[:3] == [
        "An inference engine, chapter by chapter: 0 of 4 pass.",
        "Next: 00 Title ch00_script",
        "  python3 tools/steps.py start 0",
    ]
    steps(book, "start", "0")
    begun = ["Begun: 00 Title ch00_script", "  your folder: workspace/ch00_script"]
    begun.append("  python3 tools/steps.py verify 0")
    assert said()[1:4] == begun
    steps(book, "start", "2")
    assert said()[1:5] == [*begun, "Begun: 02 Title ch02_stack"]
    shutil.rmtree(book.root / "workspace/ch02_stack")
    script = book.root / "workspace/ch00_script/examples/ch00_script.py"
    script.write_text(book.read("examples/ch00_script.py"))
    assert steps(book, "verify", "0") == 0
    assert said()[:3] == [
        "An inference engine, chapter by chapter: 1 of 4 pass.",
        "Next: 01 Title ch01_box",
        "  python3 tools/steps.py start 1 --from workspace/ch00_script",
    ]
    assert steps(book, "start", "1", "--from", "workspace/ch00_script") == 0


def test_start_from_an_older_chapter_says_what_the_book_filled_in(
    book: MiniBook, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = book.root / "workspace/ch01_box"
    steps(book, "start", "1")
    (mine / "minisgl/box.py").write_text(BOX_1.replace("class Box:", "OWN = 1\n\n\nclass Box:"))
    assert steps(book, "start", "3", "--from", str(mine)) == 0
    assert "chapters that you have not written came from the book: 2" in capsys.readouterr().out
    box = book.read("workspace/ch03_pile/minisgl/box.py")
    assert "OWN = 1" in box and "return self._things.pop()" in box
    assert (
        steps(book, "start", "1", "--from", str(book.root / "workspace/ch03_pile"), "-o", "x") == 2
    )
    assert "is a folder of chapter 3: --from goes on from an earlier" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise SystemExit(7)", "7"),
        ("raise SystemExit", "0"),
        ("raise SystemExit('bad')", "1"),
        ("import os; os._exit(5)", "5"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "-11, SIGSEGV"),
    ],
)
def test_code_that_ends_the_process_is_one_line(
    book: MiniBook, capsys: pytest.CaptureFixture[str], code: str, status: str
) -> None:
    steps(book, "start", "2")
    (book.root / "workspace/ch02_stack/minisgl/stack.py").write_text(code)
    capsys.readouterr()
    assert steps(book, "verify", "2") == 1
    shown = capsys.readouterr().out.splitlines()
    name = "tests/test_ch02_stack.py"
    assert shown[-3:-1] == [
        f"make this one green first: {name}",
        f"    your code ended the process (exit status {status})",
    ]
    assert len(shown) == 6 and shown[-1].endswith(name)


def test_verify_explains_what_lies_where_a_file_should(
    book: MiniBook, capsys: pytest.CaptureFixture[str]
) -> None:
    steps(book, "start", "2")
    mine = book.root / "workspace/ch02_stack"
    (mine / "minisgl/.#box.py").symlink_to("me@here.1")  # an editor's lock
    for path in (
        "minisgl/box.py",
        "minisgl/odd.py",
        "tests/test_ch02_stack.py",
        "tests/conftest.py",
    ):
        for make, message in (
            (Path.mkdir, "Is a directory"),
            (lambda place: place.symlink_to(place.name), "Too many levels of symbolic links"),
        ):
            place = mine / path
            kept = place.read_bytes() if place.exists() else None
            place.unlink(missing_ok=True)
            make(place)
            capsys.readouterr()
            assert steps(book, "verify", "2") == 2
            assert capsys.readouterr().err == f"steps.py: {place}: {message}\n"
            if path.startswith("minisgl/"):
                assert steps(book, "start", "3", "--from", str(mine)) == 2
                assert capsys.readouterr().err == f"steps.py: {place}: {message}\n"
            place.unlink() if place.is_symlink() else place.rmdir()
            if kept is not None:
                place.write_bytes(kept)
    assert steps(book, "verify", "2") == 1


def test_start_from_goes_on_with_the_readers_own_code(book: MiniBook) -> None:
    mine = book.root / "mine"
    steps(book, "build", "1", "-o", str(mine))
    own = BOX_1.lstrip().replace("self._things.append(thing)", "self._things += [thing]")
    own = own.replace('"""Boxes."""\n', '"""Boxes."""\n\nimport sys\n\nOWN = sys.maxsize\n')
    own = own.replace("return self._things.pop(0)", "return self._things.__getitem__(0)")
    (mine / "minisgl/box.py").write_text(own)
    (mine / "minisgl/note.py").write_text("# of the reader\n")
    assert steps(book, "start", "2", "--from", str(mine), "-o", str(book.root / "next")) == 0
    box = book.read("next/minisgl/box.py")
    assert "self._things += [thing]" in box and "OWN = sys.maxsize" in box
    assert "# chapter 2: change Box.take\n        return self._things.__getitem__(0)" in box
    assert book.read("next/minisgl/note.py") == "# of the reader\n"


def test_start_from_drops_what_the_chapter_removes(book: MiniBook) -> None:
    mine = book.root / "mine"
    steps(book, "build", "2", "-o", str(mine))
    steps(book, "start", "3", "--from", str(mine), "-o", str(book.root / "next"))
    assert not (book.root / "next/minisgl/stack.py").exists()
    assert (book.root / "next/minisgl/pile.py").exists()


def test_what_is_retired_travels_with_the_step(book: MiniBook) -> None:
    """So that plain pytest leaves it out in a workspace too."""
    steps(book, "build", "2", "-o", str(book.root / "mine"))
    retired = json.loads(book.read("mine/tests/retired.json"))
    assert list(retired) == ["tests/test_ch01_box.py::test_takes_the_first"]


# Changing a file that a later chapter has, too


def test_propagate_merges_a_fix_forward(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    book.commit()
    early = "steps/ch01_box/minisgl/box.py"
    book.replace(early, "self._things.append(thing)", "self._things += [thing]")
    assert steps(book, "propagate", "1", "minisgl/box.py") == 0
    assert "self._things += [thing]" in book.read("minisgl/box.py")
    assert "return self._things.pop()" in book.read("minisgl/box.py")
    assert capsys.readouterr().out == "ch02: minisgl/box.py: merged\n"


def test_propagate_shows_conflicts(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    book.commit()
    book.replace("steps/ch01_box/minisgl/box.py", "pop(0)", "pop(-0)")
    assert steps(book, "propagate", "1", "minisgl/box.py") == 1
    shown = capsys.readouterr().out
    assert "ch02: minisgl/box.py: conflicts" in shown and "<<<<<<< ch02" in shown
    assert "then: python3 tools/steps.py propagate 2 minisgl/box.py" in shown
    assert "<<<<<<< ch02" in book.read("minisgl/box.py")


def test_keep_stores_the_committed_version(
    book: MiniBook, capsys: pytest.CaptureFixture[str]
) -> None:
    """The workflow of the help text: edit in place, name the file in `writes`, `keep`."""
    book.commit()
    before = book.read("minisgl/box.py")
    book.append("minisgl/box.py", "\nSIZE = 3\n")
    more = '"minisgl/pile.py", "minisgl/box.py"'
    book.replace("steps/ch03_pile/step.toml", '"minisgl/pile.py"', more)
    assert steps(book, "keep") == 0
    assert capsys.readouterr().out == "ch02: steps/ch02_stack/minisgl/box.py\n"
    assert book.read("steps/ch02_stack/minisgl/box.py") == before
    assert not list(storage_problems(load_steps(book.root)))


def test_keep_moves_a_file_that_a_chapter_removes(book: MiniBook) -> None:
    book.commit()
    more = '"minisgl/stack.py", "minisgl/box.py"'
    book.replace("steps/ch03_pile/step.toml", '"minisgl/stack.py"', more)
    before = book.read("minisgl/box.py")
    assert steps(book, "keep") == 0
    assert book.read("steps/ch02_stack/minisgl/box.py") == before
    assert not (book.root / "minisgl/box.py").exists()
