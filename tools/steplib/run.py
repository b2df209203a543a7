"""Run things on a step: its main, its tests. Each in a process that sees only the step's folder."""

import json
import math
import os
import re
import signal
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tools.environment import NO_ENVIRONMENT, own_python, usable_cpus
from tools.lang import tr

from .errors import StepError
from .nursery import Nursery

PLUGIN = Path(__file__).parent / "plugin"
LIMIT_SECONDS = 1800
LOOK_SECONDS = 0.05
SIDE_BY_SIDE = 2
GRACE_SECONDS = 15  # beyond a test's own limit: code that does not return to Python is stopped
# What takes seconds to load. On macOS a process that has loaded the system's must not fork.
HEAVY = (
    ["torch", "transformers.models.llama.modeling_llama", "hypothesis", "pytest"]
    if sys.platform == "linux"
    else []
)
LIBRARIES = ("torch", "transformers", "safetensors", "tokenizers", "pytest", "numpy")


@dataclass(frozen=True)
class Finished:
    """How a process ended: exit status (None: stopped at the time limit) and what it printed."""

    status: int | None
    output: str
    errors: str
    seconds: float


@dataclass(frozen=True)
class Test:
    """What became of one test: "passed", "failed", "skipped" or "not run"; in which phase; why.

    `large`: it needs a whole engine, or much time.
    Of a failure: the last place in the code under test, the test's own line, for `a == b` what it
    got and expected, and in `more` what else pytest says of it.
    """

    outcome: str
    phase: str
    reason: str
    guard: bool
    large: bool = False
    place: str = ""
    source: str = ""
    got: str = ""
    expected: str = ""
    more: Sequence[str] = ()


@dataclass
class Report:
    """A pytest run: tests by id, files that could not be collected, slow tests left out by file.

    `ended` says in one line that the code under test ended pytest or had to be stopped; the test
    or the file that did it is among the failed or the broken ones.
    """

    output: str = ""
    tests: dict[str, Test] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    slow_left_out: dict[str, int] = field(default_factory=dict)
    ended: str = ""
    seconds: float = 0.0


Tell = Callable[[dict[str, Any]], None]


class Events:
    """Reads what the plugin tells while the tests run, into a report and to whoever listens."""

    def __init__(self, path: Path, tell: Tell, report: Report) -> None:
        path.touch()
        self._file = path.open(encoding="utf-8")
        self._tell = tell
        self._line = ""
        self._silent_at = math.inf
        self.report = report
        self.begun = ""  # the file or the test that runs now
        self.complete = False

    def read(self) -> bool:
        """Take in what is new; say whether the tests have hung past all that could end them."""
        self._line += self._file.read()
        *lines, self._line = self._line.split("\n")
        for line in lines:
            self._take(json.loads(line))
        return time.monotonic() > self._silent_at

    def close(self) -> None:
        """Take in what is left."""
        self.read()
        self._file.close()

    def _take(self, told: dict[str, Any]) -> None:
        match told["event"]:
            case "begin":
                self.begun = told["name"]
                seconds = told["seconds"] or math.inf
                self._silent_at = time.monotonic() + seconds + GRACE_SECONDS
            case "collected":
                found = {name: Test(**entry) for name, entry in told["tests"].items()}
                self.report.tests, self.report.slow_left_out = found, told["slow_left_out"]
            case "broken":
                where = f"{told['place']}: " if told["place"] else ""
                self.report.broken[told["path"]] = where + told["reason"]
            case "test":
                entry = {key: told[key] for key in told if key not in ("event", "name")}
                self.report.tests[told["name"]] = Test(**entry)
            case "end":
                self.complete = True
        self._tell(told)


def python(root: Path) -> str:
    """Return the interpreter that has the book's libraries; StepError when there is none."""
    if find_spec("torch") and find_spec("pytest"):
        return sys.executable
    own = own_python(root)
    if own is None:
        raise StepError(tr(*NO_ENVIRONMENT))
    return own


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
    brief: bool = False,
    small_first: bool = False,
    show: bool = False,
    seconds: int = 0,
    tell: Tell = lambda told: None,
    report: Report | None = None,
) -> Report:
    """Run test files of a built step in one process; `show` lets pytest print as it goes.

    `brief`: what is printed of a failure is what the report says, which saves half of the time
    where many fail. `small_first`: larger tests come later, and wait until the smaller ones pass.
    `seconds`: how long a test may take (a slow one ten times that; 0: as long as it likes). `tell`
    gets what the plugin tells, when it does, and `report` is filled then: an interrupt leaves in it
    what has ended.
    """
    tests, report = list(tests), report or Report()
    with tempfile.TemporaryDirectory(prefix="steps-") as scratch:
        variables = environment(tree) | {
            "PYTHONPATH": os.pathsep.join([str(tree), str(PLUGIN)]),
            "STEPS_REPORT": f"{scratch}/report",
            "STEPS_SECONDS": str(seconds),
            "STEPS_NO_END": tr("{} 秒内没有结束", "no end after {} s"),
            # Installed plugins cost a second per run, and a step's tests are to need none.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "STEPS_SLOW_FILES": ":".join(slow_files),
            "STEPS_SMALL_FIRST": "1" if small_first else "",
        }
        command = [interpreter, "-m", "pytest", "-p", "steps_report", "-p", "no:cacheprovider"]
        command += [f"--rootdir={tree}", "-o", "addopts=", "-q"]
        command += [f"--tb={'line' if brief else 'short'}"]
        command += ["--continue-on-collection-errors", *tests]
        if (tree / "pyproject.toml").is_file():
            command += ["-c", "pyproject.toml"]
        events = Events(Path(scratch) / "report", tell, report)
        ended = _run(command, tree, variables, show=show, watch=events.read)
        events.close()
    report.output, report.seconds = ended.output + ended.errors, ended.seconds
    status = _status_of_code(ended, reported=events.complete)
    if status is not None:
        _note_end(report, events.begun, status)
    elif not events.complete and ended.status is None:
        report.ended = tr("没有结束，已停下", "it did not end and was stopped")
        _blame(report, events.begun)
    elif not events.complete:
        report.output = f"pytest did not finish (exit status {ended.status})\n{report.output}"
    return report


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


def _note_end(report: Report, begun: str, status: int) -> None:
    shown = str(status)
    if status < 0:
        shown += f", {signal.Signals(-status).name}"
    report.ended = tr(
        f"你的代码结束了进程（退出状态 {shown}）",
        f"your code ended the process (exit status {shown})",
    )
    _blame(report, begun)


def _blame(report: Report, begun: str) -> None:
    """Let the test, or else the file, that ran at the end of a run be what has failed."""
    report.output = f"{report.ended}\n{report.output}"
    if begun in report.tests:
        report.tests[begun] = replace(report.tests[begun], outcome="failed", reason=report.ended)
    elif begun:
        report.broken[begun] = report.ended


_ending = threading.Event()
_pool = threading.local()  # .nursery: of the pool's thread


@contextmanager
def side_by_side(interpreter: str) -> Iterator[ThreadPoolExecutor]:
    """A pool in which runs share the machine; what ends the block early ends them too.

    Two of them with half of the processors each take little more than half of the time that they
    take one by one: most of a run is no work for torch.
    """
    chosen = "OMP_NUM_THREADS" in os.environ
    if not chosen:
        os.environ["OMP_NUM_THREADS"] = str(max(1, usable_cpus() // SIDE_BY_SIDE))
    nurseries: list[Nursery] = []

    def begin() -> None:
        _pool.nursery = Nursery(interpreter, HEAVY)
        nurseries.append(_pool.nursery)

    pool = ThreadPoolExecutor(SIDE_BY_SIDE, initializer=begin)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        _ending.set()
        raise
    finally:
        pool.shutdown()
        for nursery in nurseries:
            nursery.close()
        _ending.clear()
        if not chosen:
            del os.environ["OMP_NUM_THREADS"]


def _run(
    command: list[str],
    folder: Path,
    variables: dict[str, str],
    *,
    show: bool = False,
    watch: Callable[[], bool] = lambda: False,
) -> Finished:
    """Run a process with all it starts; stop all of it at a limit or on an interrupt.

    `watch` is asked again and again whether to stop.
    """
    begun = time.monotonic()
    kept = getattr(_pool, "nursery", None)
    with (
        tempfile.TemporaryDirectory(prefix="steps-") as scratch,
        nullcontext(kept) if kept else closing(Nursery(command[0])) as nursery,
    ):
        files = [] if show else [f"{scratch}/output", f"{scratch}/errors"]
        process = nursery.begin(command[1:], str(folder), variables, files)
        stopped = False
        try:
            while (status := nursery.ended(LOOK_SECONDS)) is None:
                late = time.monotonic() > begun + LIMIT_SECONDS
                if watch() or late or _ending.is_set():
                    stopped = True
                    _end(process)
        finally:
            _end(process)  # what it has left behind, too
        output, errors = [Path(path).read_text("utf-8", "replace") for path in files] or ["", ""]
    return Finished(None if stopped else status, output, errors, time.monotonic() - begun)


def _end(process: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def mask(output: str) -> str:
    """Make figures that differ between machines equal, as `_step.measured` marks them."""
    return re.sub(r"\s*≈\S+", " ≈", output)
