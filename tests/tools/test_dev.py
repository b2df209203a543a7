"""tools/dev.py: two commands on a fresh machine, whatever its paths, locale, disk and history."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import dev, fetch_model, lang
from tools.devlib import environment as environments
from tools.devlib import process, stages
from tools.devlib.environment import Environment, alone, check_python, use_new_python
from tools.devlib.model import MODEL
from tools.devlib.process import Failure, reason
from tools.devlib.stages import Result, Stage, closing_line, command_stage, report, run_stages

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_LANG", "en")


class Pip:
    """Stands in for `run`: notes pip's commands, and fails or is interrupted when told to."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.answer: tuple[int, str] | BaseException = (0, "")

    def __call__(
        self, command: list[str], root: Path, take: Callable[[bytes], None] | None = None
    ) -> tuple[int, str]:
        assert command[0].startswith(str(root)), "pip must be the environment's own"
        if take is None:
            assert command[1:3] == ["-m", "compileall"]
            return 1, ""
        take(b"Collecting x\nDownloa")
        self.commands.append(command[1:])
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pip:
    fake = Pip()
    monkeypatch.setattr(environments, "run", fake)
    # A base Python whose environments come without pip: 20 times faster to make.
    quick = tmp_path / "python"
    quick.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@" --without-pip\n')
    quick.chmod(0o755)
    monkeypatch.setattr(sys, "_base_executable", str(quick))
    return fake


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "a project 项目"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[project]\n")
    (folder / "constraints.txt").write_text("torch==2.13.0\n")
    return folder


INSTALL = ["-m", "pip", "install", "--no-compile", "-c", "constraints.txt"]
INSTALL += ["--config-settings", "editable_mode=compat", "-e", ".[dev]"]


def test_the_first_run_installs_plainly_and_the_second_does_nothing(
    checkout: Path, pip: Pip
) -> None:
    environment = Environment(checkout)
    assert environment.state(None) == "absent"
    environment.ensure(None)
    assert pip.commands == [INSTALL]
    assert environment.state(None) == "ready"
    environment.ensure(None)
    assert pip.commands == [INSTALL]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_requirements_are_installed_on_top(name: str, checkout: Path, pip: Pip) -> None:
    environment = Environment(checkout)
    environment.ensure(None)
    kept = environment.folder / "kept"
    kept.touch()
    (checkout / name).write_text("# changed\n")
    assert environment.state(None) == "outdated"
    environment.ensure(None)
    assert environment.state(None) == "ready" and len(pip.commands) == 2 and kept.exists()


def test_what_pip_prints_is_in_a_file_that_a_failure_names(
    checkout: Path, pip: Pip, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = Environment(checkout)
    environment.ensure(None)
    log = environment.folder / "pip.log"
    assert log.read_text() == "Collecting x\nDownloa"
    assert capsys.readouterr().out == f"   pip: 1 packages looked at  ({log})\n"
    (checkout / "constraints.txt").write_text("torch==2.14.0\n")
    pip.answer = (1, "ERROR: no such thing")
    with pytest.raises(Failure, match=rf"^pip failed: ERROR: no such thing  \({log}\)$"):
        environment.ensure(None)


def test_on_a_terminal_pip_speaks_the_readers_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINISGL_LANG", "zh")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with environments.PipLog(tmp_path / "pip.log") as log:
        log.take(b"Looking in indexes: a\nCollecting x==1\n  Downloading x-1.whl (3 kB)\n")
        log.take(b"Installing collected packages: x\nSuccessfully installed x-1\n")
    said = [text.strip() for text in capsys.readouterr().out.split("\r\x1b[K")[1:]]
    assert said[:3] == ["pip: 查找 x==1", "pip: 下载 x-1.whl (3 kB)", "pip: 安装…"]
    assert said[3:] == [f"pip: 看过 1 个包  ({tmp_path / 'pip.log'})"]


def test_an_nvidia_package_without_a_gpu_is_told_when_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environments, "may_fetch_cuda", lambda: True)
    with environments.PipLog(tmp_path / "pip.log") as log:
        log.take(b"Collecting torch\n  Downloading torch-2.whl (1 MB)\n")
        assert capsys.readouterr().out == ""
        log.take(b"  Downloading nvidia_a.whl (9 MB)\n  Downloading nvidia_b.whl (9 MB)\n")
    assert capsys.readouterr().out.count("--torch-index") == 1


@pytest.mark.parametrize("answer", [(1, "ERROR: no such thing"), KeyboardInterrupt()])
def test_an_environment_left_half_made_is_made_again(
    answer: tuple[int, str] | BaseException, checkout: Path, pip: Pip
) -> None:
    environment = Environment(checkout)
    pip.answer = answer
    with pytest.raises((Failure, KeyboardInterrupt)):
        environment.ensure(None)
    half = environment.folder / "half"
    half.touch()
    assert environment.state(None) == "broken"
    pip.answer = (0, "")
    environment.ensure(None)
    assert environment.state(None) == "ready" and not half.exists()


def test_an_update_left_half_made_is_made_again(checkout: Path, pip: Pip) -> None:
    environment = Environment(checkout)
    environment.ensure(None)
    (checkout / "constraints.txt").write_text("torch==2.14.0\n")
    pip.answer = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        environment.ensure(None)
    assert environment.state(None) == "broken"


def test_a_moved_checkout_gets_a_new_environment(checkout: Path, pip: Pip) -> None:
    Environment(checkout).ensure(None)
    moved = Environment(checkout.rename(checkout.with_name("moved")))
    assert moved.state(None) == "broken"
    moved.ensure(None)
    assert moved.state(None) == "ready"


def test_an_environment_whose_python_is_gone_is_made_again(checkout: Path, pip: Pip) -> None:
    environment = Environment(checkout)
    environment.ensure(None)
    environment.python.unlink()
    environment.python.symlink_to("/nowhere/python3")
    assert environment.state(None) == "broken"
    environment.ensure(None)
    assert environment.state(None) == "ready"


def test_a_link_that_leads_nowhere_is_replaced(checkout: Path, pip: Pip) -> None:
    environment = Environment(checkout)
    environment.folder.symlink_to(checkout / "nowhere")
    environment.ensure(None)
    assert environment.state(None) == "ready" and not environment.folder.is_symlink()


def test_a_damaged_stamp_means_broken(checkout: Path, pip: Pip) -> None:
    environment = Environment(checkout)
    environment.ensure(None)
    environment.stamp.write_text('{"files": ')
    assert environment.state(None) == "broken"


def test_an_environment_that_an_editor_made_is_used_and_not_removed(
    checkout: Path, pip: Pip
) -> None:
    environment = Environment(checkout)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment.folder], check=True)
    mine = environment.folder / "mine"
    mine.touch()
    environment.ensure(None)
    assert pip.commands == [INSTALL] and mine.exists() and environment.state(None) == "ready"


def test_an_index_serves_torch_only_and_is_remembered(checkout: Path, pip: Pip) -> None:
    environment = Environment(checkout)
    environment.ensure("file:///wheels")
    first = [*INSTALL[:6], "--no-deps", "--index-url", "file:///wheels", "torch"]
    assert pip.commands == [first, INSTALL]
    assert environment.state(None) == "ready"  # a later run need not name it again
    assert environment.state("file:///wheels") == "ready"
    assert environment.state("file:///others") == "broken"
    (checkout / "constraints.txt").write_text("torch==2.14.0\n")
    environment.ensure(None)
    assert pip.commands == [first, INSTALL] * 2


def test_too_little_space_is_said_before_anything_is_made(
    checkout: Path, pip: Pip, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(checkout)._replace(free=1 << 29)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(Failure, match=r"only 0\.5 GiB free"):
        Environment(checkout).ensure(None)
    assert not (checkout / ".venv").exists()


def test_a_python_without_ensurepip_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Failure, match=rf"apt install python3\.{sys.version_info[1]}-venv"):
        check_python()


def test_an_old_python_hands_over_to_a_newer_one_or_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 6))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Failure, match=r"Python 3\.11 or newer is needed"):
        use_new_python()
    newer = tmp_path / "python3.13"
    newer.touch(mode=0o755)
    calls: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: calls.append([path, *arguments]))
    monkeypatch.setattr(sys, "argv", ["tools/dev.py", "test"])
    with pytest.raises(Failure):
        use_new_python()  # the real execv never comes back
    assert calls == [[str(newer), str(newer), "tools/dev.py", "test"]]


def test_two_runs_do_not_make_the_environment_at_once(tmp_path: Path) -> None:
    entered = threading.Event()

    def second() -> None:
        with alone(tmp_path):
            entered.set()

    thread = threading.Thread(target=second)
    with alone(tmp_path):
        thread.start()
        assert not entered.wait(0.2)
    thread.join(10)
    assert entered.is_set()


NETWORK = "cannot be reached"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ERROR: Could not install: [Errno 28] No space left on device", "no space left for"),
        ("OSError: [Errno 30] Read-only file system: '/x'", "cannot be written to"),
        ("WARNING: Retrying after connection broken by NewConnectionError\nERROR: No m", NETWORK),
        ("Temporary failure in name resolution", NETWORK),
        ("ERROR: Cannot install a and b\nERROR: ResolutionImpossible", "ResolutionImpossible"),
        ("something odd\n\n[notice] A new release of pip is available\n", "something odd"),
        ("", "see the output above"),
    ],
)
def test_a_failure_is_one_line_that_says_what_to_do(text: str, expected: str) -> None:
    line = reason(text, Path("/x"))
    assert expected in line and "\n" not in line


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_errors_of_the_file_system_are_one_line(code: int) -> None:
    line = dev.one_line(OSError(code, os.strerror(code), "/some/file"))
    assert "/some/file" in line and "\n" not in line


def test_run_passes_a_stream_on_and_keeps_its_end(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    code = "import sys; print('中文'); print('oh', file=sys.stderr); sys.exit(3)"
    command = [sys.executable, "-X", "utf8", "-c", code]
    # pytest's sys.stdout is not the real one: the child's other stream shows where it went.
    status, tail = process.run(command, ROOT, tee="stderr")
    assert (status, tail) == (3, "oh\n")
    assert "中文" in capfdbinary.readouterr().out.decode()


def test_stages_go_on_after_a_failure_but_not_after_a_needed_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> str:
        raise Failure("mend it")

    stages = [Stage("one", lambda: ""), Stage("two", lambda: "bad"), Stage("three", lambda: "")]
    results = run_stages(stages)
    assert [(r.name, r.failure) for r in results] == [("one", ""), ("two", "bad"), ("three", "")]
    assert report(results) == 1
    assert "failed: two: bad" in capsys.readouterr().out

    results = run_stages([Stage("one", fail, needed=True), Stage("two", lambda: "")])
    assert [(r.name, r.failure) for r in results] == [("one", "mend it")]
    assert report([Result("one", 0.1, "")]) == 0


def test_a_failed_program_is_shown_as_one_would_type_it(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.python.parent.mkdir(parents=True)
    environment.python.symlink_to(sys.executable)
    stage = command_stage(environment, "exit", "-c", "import sys; sys.exit(4)")
    assert stage.work().endswith(".venv/bin/python -c 'import sys; sys.exit(4)'")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("..\n==== 3 passed in 0.12s ====\n", "==== 3 passed in 0.12s ===="),
        (
            "== 1 failed, 2 passed in 61.0s (0:01:01) ==",
            "== 1 failed, 2 passed in 61.0s (0:01:01) ==",
        ),
        ("\x1b[32m== \x1b[1m3 passed\x1b[0m in 0.1s ==\x1b[0m\n", "== 3 passed in 0.1s =="),
        ("== 1 passed in 0.1s ==\nmore\n== 2 passed in 0.2s ==\n", "== 2 passed in 0.2s =="),
        ("=== no tests ran in 0.01s ===", "=== no tests ran in 0.01s ==="),
        ("=== FAILURES ===\nboom", ""),
    ],
)
def test_the_closing_line_is_found(text: str, expected: str) -> None:
    assert closing_line(text) == expected


def test_pytest_says_its_closing_line_and_leaves_out_what_the_steps_have_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands: list[list[str]] = []
    closing: list[str] = []

    def run(command: list[str], root: Path, tee: str = "") -> tuple[int, str]:
        commands.append(command[1:])
        return 1, "F\n==== 1 failed, 2 passed in 0.12s ====\n"

    monkeypatch.setattr(stages, "run", run)
    stage = stages.pytest_stage(Environment(ROOT), closing)
    assert "--without-proved" in stage.work()  # to be repeated by hand
    assert "--without-proved" in commands[0] and commands[0][-4:-2] == ["-n", "3"]
    assert closing == ["==== 1 failed, 2 passed in 0.12s ===="]


def test_the_book_is_built_where_it_is_needed_and_the_judge_serves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands: list[tuple[str, ...]] = []
    failures = {"environment": "", "book": ""}

    def stage(environment: Environment, name: str, *words: str) -> Stage:
        commands.append(words)
        return Stage(name, lambda: failures[name])

    def replace(program: str, words: list[str]) -> None:
        commands.append((program, *words[1:]))

    prepared = Stage("environment", lambda: failures["environment"], needed=True)
    monkeypatch.setattr(dev, "command_stage", stage)
    monkeypatch.setattr(dev, "preparation", lambda environment, torch_index: prepared)
    monkeypatch.setattr(os, "execv", replace)
    python = str(Environment(ROOT).python)
    build = ("-m", "tools.book", "build")
    judge = (python, "practice/judge.py", "serve", "--port", "8000")
    assert dev.main(["book"]) == 0
    assert commands == [build]
    dev.main(["serve"])
    dev.main(["serve", "--port", "8001"])
    lazy = (*build, "--if-needed")
    assert commands[1:] == [lazy, judge, lazy, (*judge[:-1], "8001")]
    failures["book"] = "does not build"
    assert dev.main(["book"]) == 1
    commands.clear()
    dev.main(["serve"])
    assert commands == [lazy, judge], "exercises can be solved without the book"
    failures["environment"] = "no Python"
    commands.clear()
    assert dev.main(["serve"]) == 1 and commands == [lazy]


@pytest.fixture
def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout after use, with the model in a cache folder beside it."""
    root, home = tmp_path / "root", tmp_path / "home"
    for folder in (".venv/lib", ".steps/trees", ".hypothesis", "minisgl/__pycache__", "x.egg-info"):
        (root / folder).mkdir(parents=True)
    (root / "minisgl" / "core.py").touch()
    for name in (
        f"{MODEL}/config.json",
        f".{MODEL}.partial/x",
        f"{MODEL}.gguf",
        "mine",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    monkeypatch.setenv("MINISGL_HOME", str(home))
    return root


def test_clean_removes_what_can_be_made_again_and_keeps_the_model(used: Path) -> None:
    assert dev.clean(used, model=False) == 0
    assert [path.name for path in used.rglob("*")] == ["minisgl", "core.py"]
    assert len(list((used.parent / "home").iterdir())) == 4


def test_clean_model_removes_the_model_and_nothing_else(used: Path) -> None:
    dev.clean(used, model=True)
    assert [path.name for path in (used.parent / "home").iterdir()] == ["mine"]


def test_clean_unlinks_a_linked_environment(used: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (used / ".venv").rename(elsewhere)
    (used / ".venv").symlink_to(elsewhere)
    dev.clean(used, model=False)
    assert not (used / ".venv").is_symlink() and (elsewhere / "lib").is_dir()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"MINISGL_LANG": "zh", "LANG": "en_US.UTF-8"}, "zh"),
        ({"MINISGL_LANG": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "zh_TW.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "ca_ES.UTF-8"}, "en"),
        ({"LANG": "C.UTF-8"}, "zh"),
        ({"LANG": "POSIX"}, "zh"),
        ({}, "zh"),
    ],
)
def test_the_language_is_the_readers(
    settings: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MINISGL_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert lang.language() == expected


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The tools alone, where nothing was set up, in a path that is awkward on purpose."""
    root = tmp_path / "空 格 and more"
    shutil.copytree(ROOT / "tools", root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, root)
    return root


def call(root: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run dev.py in a bare environment, as a person on a fresh machine would."""
    bare = {"PATH": os.environ["PATH"], "HOME": str(root), "LC_ALL": "C", **settings}
    command = [sys.executable, "tools/dev.py", *words]
    return subprocess.run(command, cwd=root, env=bare, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1"])
def test_the_doctor_says_what_to_do_on_a_fresh_machine(copied: Path, locale: str) -> None:
    done = call(copied, "doctor", LC_ALL=locale, PYTHONIOENCODING="ascii")
    assert done.returncode == 1 and done.stderr == ""
    lines = done.stdout.splitlines()
    marked = [lines[i : i + 2] for i, line in enumerate(lines) if line.startswith("!")]
    assert [line.split()[1] for line, _ in marked] == ["environment", "model"]
    assert "tools/dev.py test" in marked[0][1] and "tools/dev.py demo" in marked[1][1]


def test_a_user_without_a_home_is_told_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "MINISGL_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])  # a user without an entry
    with pytest.raises(Failure, match=r"^there is no home folder: set MINISGL_HOME .*$"):
        dev.main(["doctor"])
    assert fetch_model.main(["--verify"]) == 1
    assert "set MINISGL_HOME" in capsys.readouterr().err


def test_a_clone_has_the_same_bytes_on_every_system(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    shutil.copy(ROOT / ".gitattributes", source)
    files = {"a.py": b"one\ntwo\n", "b.txt": b"x\n", "c.woff2": b"\r\n\n\x01\n"}
    for name, content in files.items():
        (source / name).write_bytes(content)
    commit = ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "all"]
    for words in (["init", "-q"], ["add", "-A"], commit):
        subprocess.run(["git", *words], cwd=source, check=True)
    windows = ["-c", "core.autocrlf=true"]
    subprocess.run(["git", "clone", "-q", *windows, source, tmp_path / "clone"], check=True)
    assert {name: (tmp_path / "clone" / name).read_bytes() for name in files} == files


def test_editors_and_containers_find_the_environment_and_the_tests() -> None:
    settings = json.loads((ROOT / ".vscode/settings.json").read_text("utf-8"))
    assert settings["python.defaultInterpreterPath"] == "${workspaceFolder}/.venv/bin/python"
    assert settings["python.testing.pytestArgs"] == ["tests"]
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    words = container["postCreateCommand"].split()
    assert dev.parse(words[2:]).command == "demo" and (ROOT / words[1]).is_file()


def test_make_passes_the_port_on() -> None:
    for words, told in ((["serve", "PORT=9000"], "serve --port 9000"), (["demo"], "demo")):
        command = ["make", "-n", *words]
        # As in a shell: under `make test` its own make would say where it is.
        shell = {name: value for name, value in os.environ.items() if "MAKE" not in name}
        done = subprocess.run(
            command, cwd=ROOT, env=shell, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == f"python3 tools/dev.py {told}"


def test_a_wrong_command_is_explained_in_one_line(copied: Path) -> None:
    done = call(copied, "tset")
    assert done.returncode == 2 and "invalid choice: 'tset'" in done.stderr


def test_a_failing_pip_ends_the_run_with_one_line(copied: Path) -> None:
    (copied / "constraints.txt").write_text("torch is fine\n")
    done = call(copied, "test", MINISGL_LANG="en")
    assert done.returncode == 1 and "Traceback" not in done.stdout + done.stderr
    failures = [line for line in done.stdout.splitlines() if line.startswith("failed: ")]
    assert len(failures) == 1 and failures[0].startswith("failed: environment: pip failed: ERROR")
    assert Environment(copied).state(None) == "broken"
