"""What the reader sees while tests run on his code: a bar on a terminal, else a line for each."""

import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.environment import NO_ENVIRONMENT
from tools.lang import tr

from .errors import StepError
from .manifest import Step
from .run import Report, Test

SIGNS = {"passed": "✓", "skipped": "-"}
WIDEST = 40
MOST_FAILURES = 5  # that are shown on a terminal; without one, all


def short(folder: Path) -> str:
    """The folder as it can be typed from here."""
    here = Path.cwd()
    folder = folder.absolute()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)


class Live:
    """Says what becomes of each test while the tests run: a bar on a terminal, else a line each.

    On a terminal what passes, and what waits for a function that is not written, only counts; of
    what fails the first few are shown.
    """

    def __init__(self, step: Step, folder: Path) -> None:
        # Here, where there are tests to run: `list` and its like are to be quick.
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        except ModuleNotFoundError:
            raise StepError(tr(*NO_ENVIRONMENT)) from None

        self._step, self._folder = step, folder
        self._console = Console(highlight=False, soft_wrap=True)
        self._quiet = self._console.is_terminal
        columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False)
        self._bar = Progress(
            *columns, console=self._console, transient=True, disable=not self._quiet
        )
        self._failures = 0
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> "Live":
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
        if kind is KeyboardInterrupt:
            task = self._bar.tasks[0]
            counts = f"{task.completed:.0f}/{task.total or 0:.0f}"
            zh = f"停在 {counts}；再运行一次就接着跑，已全部通过的测试文件不再重跑"
            en = f"stopped at {counts}; run it again to go on: files that have passed are known"
            self._say(tr(zh, en))

    def __call__(self, told: dict[str, Any]) -> None:
        """Take what `verify` tells."""
        match told["event"]:
            case "part":
                self._part(told.get("report"))
            case "begin":
                name = told["name"].rpartition("/")[2].rpartition("::")[2]
                self._bar.update(self._task, description=name[:WIDEST])
            case "collected":
                done = self._bar.tasks[0].completed
                self._bar.update(self._task, total=done + len(told["tests"]))
            case "broken":
                where = f"{told['place']}: " if told["place"] else ""
                self._say(f"✗ {told['path']}: {where}{told['reason']}", "red")
            case "known":
                for name, test in told["tests"].items():
                    self._test(name, test)
            case "test":
                more = {key: told[key] for key in told if key not in ("event", "name")}
                self._test(told["name"], Test(**more))

    def _part(self, own: Report | None) -> None:
        number = f"{self._step.number:02}"
        if own is None:
            where = short(self._folder)
            line = tr(f"第 {number} 章，你的代码在 {where}", f"chapter {number}, code in {where}")
        else:
            line = counted(self._step, own)
            line = tr(f"{line}；再看前面各章", f"{line}; now the earlier chapters")
        self._say(line, "bold")
        self._bar.reset(self._task, description=tr("加载中", "loading"), total=None)

    def _test(self, name: str, test: Test) -> None:
        self._bar.advance(self._task)
        sign = SIGNS.get(test.outcome, "✗")
        waits = test.reason.startswith("NotImplementedError: chapter")
        if self._quiet:
            if sign != "✗" or waits or self._failures == MOST_FAILURES:
                return
            self._failures += 1
        where = f"  ({test.place})" if test.place and not waits else ""
        style = {"✓": "green", "-": "yellow"}.get(sign, "red")
        self._say(f"{sign} {name}" + (f": {test.reason}{where}" if test.reason else ""), style)

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style or None, markup=False)
        sys.stdout.flush()


def counted(step: Step, report: Report) -> str:
    """How many of a chapter's tests pass, such as `chapter 05: 52 of 52`."""
    green = sum(test.outcome == "passed" for test in report.tests.values())
    total = len(report.tests)
    return tr(
        f"第 {step.number:02} 章：{total} 项测试通过 {green} 项",
        f"chapter {step.number:02}: {green} of {total}",
    )
