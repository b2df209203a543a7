"""The commands as a reader types them: output, exit status, one clear line for bad input."""

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from minibook import MiniBook, make_book

from practice.judgelib import options
from tools.lang import tr
from tools.steplib import commands
from tools.steplib.commands import main


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MiniBook:
    monkeypatch.setenv("MINISGL_LANG", "en")
    monkeypatch.delenv("MINISGL_TREE", raising=False)
    return make_book(tmp_path / "book")


def steps(book: MiniBook, *arguments: str) -> int:
    return main(book.root, "", arguments)


def python(book: MiniBook, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=book.root, env=environment | variables, capture_output=True, text=True
    )


def test_list_is_quick_and_imports_no_torch(book: MiniBook) -> None:
    code = "import sys; from pathlib import Path; from tools.steplib.commands import main\n"
    code += "sys.exit(main(Path(), '', ['list']) or 'torch' in sys.modules)"
    begun = time.monotonic()
    ended = python(book, "tools/steps.py", "list")
    seconds = time.monotonic() - begun
    *steps, legend = ended.stdout.splitlines()
    assert [line[:4] for line in steps] == ["ch00", "ch01", "ch02", "ch03"]
    assert legend.startswith("files: + new")
    assert "+1 ~1 -0      7/350  Title ch02_stack" in ended.stdout
    # Its bar is 0.3 s on a quiet machine; a busy one gets leave to be slower, not to import torch.
    assert seconds < 3
    assert python(book, "-c", code).returncode == 0


def test_every_command_and_argument_says_what_it_is_for() -> None:
    for parser in (commands.parser(""), options.parser("")):
        assert parser._subparsers
        under = parser._subparsers._group_actions[0]
        assert isinstance(under.choices, dict)
        for name, one in under.choices.items():
            assert one.description, name
            assert all(action.help for action in one._actions), name


def test_tree(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    steps(book, "tree", "2")
    assert capsys.readouterr().out.splitlines() == [
        "files up to this chapter: 3 (1 new, 1 changed, 0 early)",
        "",
        "minisgl/",
        "├── __init__.py",
        "├── box.py  ← changed",
        "└── stack.py  ← new",
    ]


def test_show_and_diff(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    steps(book, "show", "1", "minisgl/box.py:Box.take")
    assert "pop(0)" in capsys.readouterr().out
    steps(book, "show", "2", "minisgl/box.py")
    assert "pop()" in capsys.readouterr().out
    steps(book, "diff", "2", "minisgl/box.py")
    shown = capsys.readouterr().out
    assert "-        return self._things.pop(0)\n" in shown
    assert "stack" not in shown


def test_build_into_a_folder(book: MiniBook) -> None:
    folder = book.root / "out"
    assert steps(book, "build", "1", "-o", str(folder)) == 0
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {
        "minisgl/__init__.py",
        "minisgl/box.py",
        "examples/_step.py",
        "examples/ch00_script.py",
        "examples/ch01_box.py",
        "tests/conftest.py",
        "tests/helper_of_tests.py",
        "tests/test_ch00_script.py",
        "tests/test_ch01_box.py",
        "pyproject.toml",
    }
    assert "pop(0)" in (folder / "minisgl/box.py").read_text()


def test_last_step_is_the_shipped_package(book: MiniBook) -> None:
    folder = book.root / "out"
    steps(book, "build", "3", "-o", str(folder))
    ours = {path.name: path.read_bytes() for path in (book.root / "minisgl").glob("*.py")}
    assert {path.name: path.read_bytes() for path in (folder / "minisgl").glob("*.py")} == ours


def test_run_and_test(book: MiniBook, capfd: pytest.CaptureFixture[str]) -> None:
    assert steps(book, "run", "1") == 0
    assert capfd.readouterr().out == "1\n"
    assert steps(book, "test", "2") == 0
    assert "4 passed, 2 deselected" in capfd.readouterr().out
    book.replace("tests/test_ch02_stack.py", "== 2", "== 3")
    assert steps(book, "test", "2") == 1


def test_record_then_check(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    book.append("examples/ch03_pile.py", '\nprint(_step.tr("新", "new"))\n')
    book.remove("steps/ch01_box/README.md")
    assert steps(book, "record", "3") == 0
    assert book.read("steps/ch03_pile/expected.zh.txt") == "1 7\n新\n"
    assert capsys.readouterr().out.splitlines() == [
        "steps/ch03_pile/expected.zh.txt",
        "steps/ch03_pile/expected.en.txt",
        "steps/ch01_box/README.md",
    ]
    assert steps(book, "check", "3") == 0
    shown = capsys.readouterr().out
    assert "✓ ch03_pile" in shown and "8/350 lines" in shown and "red 1 + 0 guards" in shown
    assert "1 steps, 5 tests (0 known): proved" in shown


def test_recording_again_takes_the_new_figures(book: MiniBook) -> None:
    book.replace("examples/ch00_script.py", "measured(0.5)", "measured(1.5)")
    steps(book, "record", "0")
    assert book.read("steps/ch00_script/expected.en.txt") == "twice 4 ≈1.5\n"


def test_check_fails_with_status_1(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    book.write("minisgl/extra.py", "")
    book.replace("examples/ch00_script.py", "double(2)", "double(3)")
    assert steps(book, "check", "0") == 1
    shown = capsys.readouterr().out
    assert "✗ minisgl/extra.py is in no step's tree" in shown and "-twice 4 ≈" in shown


TOML = "steps/ch01_box/step.toml"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("writes", "write", "unknown key `write`"),
        ("concept =", "# concept =", "key `concept` is missing"),
        ("part = 1", 'part = "one"', "`part` must be of type int"),
        ("part = 1", "part = = 1", "Invalid value"),
        ('"minisgl/box.py"', '"../box.py"', "'../box.py' is not a plain path under minisgl/"),
        ('"minisgl/box.py"', '"minisgl/../x.py"', "is not a plain path under minisgl/"),
        ('"minisgl/box.py"', '"/minisgl/box.py"', "is not a plain path under minisgl/"),
        ('"minisgl/box.py"', "7", "7 is not a plain path"),
        ('"minisgl/box.py"', '"minisgl/__init__.py"', "names minisgl/__init__.py twice"),
        ("removes = []", 'removes = ["minisgl/box.py"]', "writes and removes minisgl/box.py"),
        ("examples/ch01_box.py", "tests/ch01_box.py", "is not a plain path under examples/"),
        ("en =", "de =", "`title` must have the keys zh and en"),
        ("removes = []", 'removes = []\nretires = [{test = "a"}]', "exactly the keys test, by and"),
        ("removes = []", "removes = []\nahead = {x = 7}", "[ahead] needs"),
    ],
)
def test_bad_manifest(
    book: MiniBook, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    book.replace(TOML, old, new)
    assert steps(book, "list") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"steps.py: {TOML}: ") and message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tree", "7"], "there is no step 7: the steps are 0 to 3"),
        (["verify", "2"], "is not a workspace: run python3 tools/steps.py start 2 first"),
        (["build", "1", "-o", "tools"], "tools is not an empty folder"),
        (["start", "1", "-o", "pyproject.toml"], "pyproject.toml is not an empty folder"),
        (["start", "2", "--from", "tools"], "tools has no folder minisgl/ to go on from"),
        (["show", "1", "minisgl/pile.py"], "step 1 has no minisgl/pile.py"),
        (["show", "1", "minisgl/box.py:Lid"], "minisgl/box.py has no Lid; it has Box"),
        (["diff", "1", "minisgl/pile.py"], "step 1 has no minisgl/pile.py"),
        (["propagate", "1", "minisgl/pile.py"], "step 1 does not write minisgl/pile.py"),
        (["propagate", "1", "minisgl/box.py"], "no change since the last commit"),
    ],
)
def test_bad_input_is_one_line(book: MiniBook, arguments: list[str], message: str) -> None:
    ended = python(book, "tools/steps.py", *arguments)
    assert ended.returncode == 2
    assert ended.stderr.startswith("steps.py: ") and message in ended.stderr
    assert ended.stderr.count("\n") == 1 and not ended.stdout


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("examples/ch01_box.py", "examples/ch01_box.py: No such file"),
        ("tests/test_ch01_box.py", "tests/test_ch01_box.py: No such file"),
        ("steps/ch01_box/minisgl/box.py", "its version of minisgl/box.py should lie at"),
    ],
)
def test_missing_file(
    book: MiniBook, path: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    book.remove(path)
    assert steps(book, "build", "1") == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_syntax_error_is_one_line(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    book.append("tests/test_ch01_box.py", "\ndef broken(:\n")
    assert steps(book, "build", "1") == 2
    assert "tests/test_ch01_box.py:" in capsys.readouterr().err


def test_folder_without_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(tmp_path, "", ["list"]) == 2
    assert "no chNN_name/step.toml in it" in capsys.readouterr().err


# examples/_step.py


def test_example_runs_on_its_own_step(book: MiniBook, tmp_path: Path) -> None:
    ended = python(book, "examples/ch01_box.py")
    assert (ended.stdout, ended.stderr) == ("1\n", "")
    outside = subprocess.run(
        [sys.executable, str(book.root / "examples/ch02_stack.py")],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert outside.stdout == "2\n"


def test_example_runs_on_the_tree_that_is_named(book: MiniBook) -> None:
    steps(book, "build", "2", "-o", str(book.root / "mine"))
    box = book.root / "mine/minisgl/box.py"
    box.write_text(box.read_text().replace("pop()", "pop() * 10"))
    ended = python(book, "examples/ch02_stack.py", MINISGL_TREE=str(book.root / "mine"))
    assert ended.stdout == "20\n"
    assert ended.stderr == f"this runs the code in {book.root}/mine\n"
    assert python(book, "mine/examples/ch02_stack.py").stdout == "20\n"


def test_run_takes_the_readers_code_where_there_is_some(
    book: MiniBook, capfd: pytest.CaptureFixture[str]
) -> None:
    steps(book, "build", "2", "-o", str(book.root / "workspace/ch02_stack"))
    box = book.root / "workspace/ch02_stack/minisgl/box.py"
    box.write_text(box.read_text().replace("pop()", "pop() * 10"))
    capfd.readouterr()
    for arguments, output in ((["2"], "20\n"), (["2", "--book"], "2\n"), (["1"], "1\n")):
        assert steps(book, "run", *arguments) == 0
        out, error = capfd.readouterr()
        assert (out, "this runs the code in" in error) == (output, output == "20\n")


@pytest.mark.parametrize("tree", ["nowhere", "steps", "pyproject.toml"])
def test_a_tree_that_is_none_is_one_line(book: MiniBook, tree: str) -> None:
    shipped = str(book.root)  # importable, as where the project is installed
    ended = python(book, "examples/ch02_stack.py", MINISGL_TREE=tree, PYTHONPATH=shipped)
    message = f"MINISGL_TREE must name a folder that holds minisgl/, {tree} has none\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", message)


def test_the_tree_of_a_step_without_a_package_is_one(book: MiniBook) -> None:
    steps(book, "build", "0", "-o", str(book.root / "zero"))
    assert not (book.root / "zero/minisgl").exists()
    assert python(book, "examples/ch00_script.py", MINISGL_TREE="zero").stdout == "twice 4 ≈0.5\n"


def test_example_without_a_step_says_so(book: MiniBook) -> None:
    book.write("examples/other.py", "import _step\n")
    ended = python(book, "examples/other.py")
    assert ended.stderr == "_step: no step.toml names examples/other.py as its main\n"


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"LANG": "C"},
        {"LANG": "C.UTF-8"},
        {"LC_ALL": "POSIX"},
        {"LANG": "en_US.UTF-8"},
        {"LANG": "zh_CN.UTF-8"},
        {"LANG": "fr_FR", "LC_ALL": "zh_TW"},
        {"LANG": "zh_CN", "MINISGL_LANG": "en"},
        {"LANG": "de_DE", "MINISGL_LANG": "zh"},
        {"LANG": "de_DE", "MINISGL_LANG": "ZH"},
        {"LANG": "c"},
        {"LANG": "posix.UTF-8"},
    ],
)
def test_examples_and_tools_speak_one_language(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_examples = importlib.import_module("_step").tr
    for name in ("MINISGL_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert of_examples("zh", "en") == tr("zh", "en")


def test_missing_model_is_one_line(book: MiniBook, tmp_path: Path) -> None:
    book.append("examples/ch01_box.py", "\n_step.model_dir()\n")
    for name in ("nothing", "config.json"):  # a folder without weights is no model either
        (tmp_path / name).write_text("{}")
        ended = python(book, "examples/ch01_box.py", MINISGL_MODEL=str(tmp_path))
        assert ended.stderr == f"no model in {tmp_path}: run python3 tools/fetch_model.py first\n"
    (tmp_path / "model.safetensors").write_text("")
    assert python(book, "examples/ch01_box.py", MINISGL_MODEL=str(tmp_path)).returncode == 0


@pytest.mark.parametrize("command", ["test", "check"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_tests_too(book: MiniBook, number: signal.Signals, command: str) -> None:
    book.append(
        "examples/ch00_script.py",
        "\nimport os, time\n"
        f"with open({str(book.root / 'pid')!r}, 'w') as file:\n    print(os.getpid(), file=file)\n"
        "time.sleep(60)\n",
    )
    heard = partial(signal.signal, number, signal.SIG_DFL)  # under nohup it would not be
    words = [sys.executable, "tools/steps.py", command, "0"]
    with subprocess.Popen(words, cwd=book.root, preexec_fn=heard) as run:
        pid = int(wait_for(lambda: (book.root / "pid").exists() and book.read("pid").strip()))
        try:
            run.send_signal(number)
            assert run.wait(timeout=10) == 128 + number
            wait_for(lambda: not alive(pid))
        finally:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended may wait for its new parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# Plain pytest at the root


def test_pytest_at_the_root_reports_a_bad_manifest_in_one_line(book: MiniBook) -> None:
    book.replace(TOML, "writes", "write")
    ended = python(book, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "ERROR: steps/ch01_box/step.toml: unknown key `write`" in ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_pytest_at_the_root_leaves_out_what_is_retired(book: MiniBook) -> None:
    ended = python(book, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "5 passed, 1 deselected" in ended.stdout
    assert (
        "retired: tests/test_ch01_box.py::test_takes_the_first: a box gives the last thing first "
        "(ch02: tests/test_ch02_stack.py::test_takes_the_last)"
    ) in ended.stdout
    assert (
        "retired: tests/test_ch02_stack.py: stacks are gone "
        "(ch03: tests/test_ch03_pile.py::test_counts)"
    ) in ended.stdout
