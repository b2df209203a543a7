"""What the commands say of a check, of a new workspace and of the reader's work."""

import shlex
from pathlib import Path

from tools.lang import tr

from .check import Finding
from .difference import BUDGET_LINES
from .manifest import Book, Step
from .run import Report, python
from .workspace import Stub, Verdict

SIGNS = {"passed": "✓", "skipped": "-"}


def print_finding(found: Finding, files: int, seconds: float) -> None:
    """Print one line on a step, and one for each thing to know or to put right."""
    sign = "✗" if found.problems else "✓"
    print(
        f"{sign} {found.step.name:<22} {files:>3} files  {found.lines:>4}/{BUDGET_LINES} lines  "
        f"{found.tests:>4} tests ({found.cached_tests} known)  red {found.red} + "
        f"{found.guards} guards  {seconds:.1f} s",
        flush=True,
    )
    if found.step.overrun:
        print(f"    over the budget because: {found.step.overrun}")
    for test, reason in found.skipped.items():
        print(f"    not proved here: {test}: {reason}")
    for problem in found.problems:
        print("    ✗ " + problem.replace("\n", "\n      "), flush=True)


def default_workspace(step: Step) -> Path:
    """Return where `start` puts the workspace of a step unless it is told."""
    return step.folder.parents[1] / "workspace" / step.name


def print_start(step: Step, folder: Path, stubs: list[Stub]) -> None:
    """Say where the workspace is, what is to be written in it, and what then."""
    print(tr(f"工作区：{folder}", f"workspace: {folder}"))
    print(tr(f"要写的函数：{len(stubs)} 个", f"functions to write: {len(stubs)}"))
    for stub in stubs:
        print(f"  {stub.path}:{stub.line}  {stub.name}")
    again = f"python3 tools/steps.py verify {step.number}{_folder_option(step, folder)}"
    print(tr(f"写完后运行：{again}", f"then run: {again}"))


def _folder_option(step: Step, folder: Path) -> str:
    return "" if folder == default_workspace(step) else f" -o {_quoted(folder)}"


def _quoted(folder: Path) -> str:
    return shlex.quote(str(folder))


def print_verdict(book: Book, step: Step, folder: Path, verdict: Verdict) -> None:
    """Say what is red, what is green, and what to do next."""
    for report in (verdict.own, verdict.earlier):
        if report:
            _print_report(report)
    if not verdict.passed:
        _print_next(book, folder, verdict)
        return
    print(tr(f"第 {step.number} 章通过。", f"Chapter {step.number} passes."))
    after = [other for other in book if other.number > step.number]
    if after:
        command = f"python3 tools/steps.py start {after[0].number} --from {_quoted(folder)}"
        print(tr(f"下一步：{command}", f"next: {command}"))


def _print_report(report: Report) -> None:
    for path, reason in report.broken.items():
        print(f"✗ {path}: {reason}")
    for name, test in report.tests.items():
        sign = SIGNS.get(test.outcome, "✗")
        print(f"{sign} {name}" + (f": {test.reason}" if test.reason else ""))
    if not report.tests and not report.broken:
        print(f"✗ {report.ended}" if report.ended else report.output)


def _print_next(book: Book, folder: Path, verdict: Verdict) -> None:
    report = verdict.earlier or verdict.own
    red = [name for name, test in report.tests.items() if test.outcome not in SIGNS]
    red += report.broken
    if verdict.stubs:
        print(tr(f"还没写的函数：{len(verdict.stubs)} 个", f"still to write: {len(verdict.stubs)}"))
        for stub in verdict.stubs:
            print(f"  {folder / stub.path}:{stub.line}  {stub.name}")
    if red:
        # Not just `python`: the reader's shell may know none that has pytest.
        test = [python(book.root), "-m", "pytest", red[0].split("[")[0]]
        command = f"cd {_quoted(folder)} && {shlex.join(test)}"
        print(tr(f"先让这一项变绿：{command}", f"make this one green first: {command}"))
