"""A reader's way through a chapter: `start`, write, `verify`, and go on from one's own work."""

import json
import sys
from pathlib import Path

import pytest
from minibook import BOX_1, MiniBook, make_book

from tools.steplib import load_steps
from tools.steplib.commands import main
from tools.steplib.storage import storage_problems
from tools.store import Store


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
    assert 'raise NotImplementedError("chapter 2: Box.take")' in box
    assert "self._things.append(thing)" in box  # unchanged since chapter 1
    assert '"""Remove the last thing."""' in box
    stack = book.read("workspace/ch02_stack/minisgl/stack.py")
    assert stack.endswith('    raise NotImplementedError("chapter 2: stack_of")\n')
    shown = capsys.readouterr().out
    assert "functions to write: 2" in shown and "minisgl/box.py:17  Box.take" in shown
    assert "python3 tools/steps.py verify 2" in shown


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
    assert steps(book, "verify", "2") == 1
    shown = capsys.readouterr().out
    name = "tests/test_ch02_stack.py::test_takes_the_last"
    assert f"✗ {name}: NotImplementedError: chapter 2: stack_of" in shown
    assert "still to write: 2" in shown and "minisgl/stack.py:8  stack_of" in shown
    assert f"cd {book.root}/workspace/ch02_stack && {sys.executable} -m pytest {name}" in shown
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
    assert "✗ tests/test_ch01_box.py::test_holds_what_is_put" in shown


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
    first, *more = capsys.readouterr().out.splitlines()
    name = "tests/test_ch02_stack.py"
    assert first == f"✗ {name}: your code ended the process (exit status {status})"
    assert more[-1].startswith("make this one green first: ") and more[-1].endswith(name)
    assert len(more) == 3  # between them, the stub that is left


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
    assert "__getitem__" not in box
    assert 'raise NotImplementedError("chapter 2: Box.take")' in box
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
