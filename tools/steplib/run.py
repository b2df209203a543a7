"""Run things on a step: its main, its tests. Each in a process that sees only the step's folder."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tools.environment import NO_ENVIRONMENT
from tools.lang import tr

from .errors import StepError

PLUGIN = Path(__file__).parent / "plugin"
LIMIT_SECONDS = 1800
LIBRARIES = ("torch", "transformers", "safetensors", "tokenizers", "pytest", "numpy")


@dataclass(frozen=True)
class Finished:
    """How a process ended: exit status (None: stopped at the time limit) and what it printed."""

    status: int | None
    output: str
    errors: str


@dataclass(frozen=True)
class Test:
    """What became of one test: "passed", "failed", "skipped" or "not run"; in which phase; why."""

    outcome: str
    phase: str
    reason: str
    guard: bool


@dataclass(frozen=True)
class Report:
    """A pytest run: tests by id, files that could not be collected, slow tests left out by file.

    `ended` says in one line that the code under test ended pytest; where it is known which file
    did it, that file is among the broken ones.
    """

    output: str
    tests: dict[str, Test] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    slow_left_out: dict[str, int] = field(default_factory=dict)
    ended: str = ""


def python(root: Path) -> str:
    """Return the interpreter that has the book's libraries; StepError when there is none."""
    if find_spec("torch") and find_spec("pytest"):
        return sys.executable
    own = root / ".venv" / "bin" / "python"
    if own.is_file():
        return str(own)
    raise StepError(tr(*NO_ENVIRONMENT))


@lru_cache
def versions_of(interpreter: str) -> str:
    """Return the versions that a result depends on, read from folder names without an import."""
    if interpreter == sys.executable:
        place = Path(sysconfig.get_paths()["purelib"])
        version = sys.version
    else:
        place = next(iter(Path(interpreter).parents[1].glob("lib/python3.*/site-packages")), Path())
        version = str(place)
    found = (path.name for name in LIBRARIES for path in place.glob(f"{name}-*.dist-info"))
    return " ".join([version, *sorted(found)])


def environment(tree: Path, language: str | None = None) -> dict[str, str]:
    """Return the variables of a process that sees `tree` and no other copy of the package."""
    found = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    found.update(MINISGL_TREE=str(tree), PYTHONPATH=str(tree), PYTHONUTF8="1")
    if language:
        found["MINISGL_LANG"] = language
    return found


def run_main(interpreter: str, tree: Path, main: str, language: str) -> Finished:
    """Run the main of a built step and return what it printed."""
    # As in the conftest: a check shares the machine with others, and no thread is to spin.
    variables = {"OMP_WAIT_POLICY": "PASSIVE"} | environment(tree, language)
    return _run([interpreter, main], tree, variables)


def run_tests(
    interpreter: str,
    tree: Path,
    tests: Iterable[str],
    slow_files: Iterable[str] = (),
    *,
    show: bool = False,
) -> Report:
    """Run test files of a built step in one process; `show` lets pytest print as it goes."""
    tests = list(tests)
    with tempfile.TemporaryDirectory(prefix="steps-") as scratch:
        report = Path(scratch) / "report.json"
        variables = environment(tree) | {
            "PYTHONPATH": os.pathsep.join([str(tree), str(PLUGIN)]),
            "STEPS_REPORT": str(report),
            # Installed plugins cost a second per run, and a step's tests are to need none.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "STEPS_SLOW_FILES": ":".join(slow_files),
        }
        command = [interpreter, "-m", "pytest", "-p", "steps_report", "-p", "no:cacheprovider"]
        command += [f"--rootdir={tree}", "-o", "addopts=", "-q", "--tb=short"]
        command += ["--continue-on-collection-errors", *tests]
        if (tree / "pyproject.toml").is_file():
            command += ["-c", "pyproject.toml"]
        ended = _run(command, tree, variables, show=show)
        status = _status_of_code(ended, reported=report.is_file())
        if status is not None:
            return _ended_by_code(ended, status, tests)
        if not report.is_file():
            why = "took too long" if ended.status is None else f"exit status {ended.status}"
            return Report(f"pytest did not finish ({why})\n{ended.output}{ended.errors}")
        data: dict[str, Any] = json.loads(report.read_text("utf-8"))
    tests_run = {name: Test(**entry) for name, entry in data.pop("tests").items()}
    return Report(ended.output + ended.errors, tests_run, **data)


def _status_of_code(ended: Finished, *, reported: bool) -> int | None:
    """Return the status with which the code under test ended pytest; None: it did not."""
    if reported:
        # pytest takes a SystemExit during the import of a test for an error of its own.
        found = re.search(r"^INTERNALERROR> SystemExit(?:: (.*))?$", ended.output, re.MULTILINE)
        if not found:
            return None
        value = found[1] or "0"
        return int(value) if re.fullmatch(r"-?\d+", value) else int(value not in ("None", "False"))
    # What pytest itself refuses ends with one of these and says why.
    refused = ended.status in (1, 2, 3, 4) and ended.errors.strip()
    return None if refused else ended.status


def _ended_by_code(ended: Finished, status: int, tests: list[str]) -> Report:
    shown = str(status)
    if status < 0:
        shown += f", {signal.Signals(-status).name}"
    line = tr(
        f"你的代码结束了进程（退出状态 {shown}）",
        f"your code ended the process (exit status {shown})",
    )
    output = ended.output + ended.errors
    named = tests if len(tests) == 1 else [path for path in tests if path in output]
    return Report(f"{line}\n{output}", broken=dict.fromkeys(named[:1], line), ended=line)


def _run(
    command: list[str], folder: Path, variables: dict[str, str], *, show: bool = False
) -> Finished:
    """Run a process with all it starts; stop all of it at the time limit or on an interrupt."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=None if show else subprocess.PIPE,
        stderr=None if show else subprocess.PIPE,
        start_new_session=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            output, errors = process.communicate(timeout=LIMIT_SECONDS)
            return Finished(process.returncode, output or "", errors or "")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            return Finished(None, output or "", errors or "")
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def mask(output: str) -> str:
    """Make figures that differ between machines equal, as `_step.measured` marks them."""
    return re.sub(r"\s*≈\S+", " ≈", output)
