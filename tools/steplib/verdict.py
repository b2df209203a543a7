"""What the commands say of a check, of a new workspace and of the reader's work."""

import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tools.lang import tr

from .check import Finding
from .difference import BUDGET_LINES
from .live import SIGNS, counted, short
from .manifest import Book, Step
from .progress import passed
from .run import Report, python
from .verify import Verdict
from .workspace import Todo, Workspace


def print_finding(found: Finding, files: int) -> None:
    """Print one line on a step, and one for each thing to know or to put right.

    Its seconds are those of its runs together.
    """
    sign = "✗" if found.problems else "✓"
    print(
        f"{sign} {found.step.name:<22} {files:>3} files  {found.lines:>4}/{BUDGET_LINES} lines  "
        f"{found.tests:>4} tests ({found.cached_tests} known)  red {found.red} + "
        f"{found.guards} guards  {found.seconds:.1f} s",
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


def print_start(step: Step, folder: Path, made: Workspace) -> None:
    """Say where the workspace is, what is to be written in it, and what then."""
    print(tr(f"工作区：{short(folder)}", f"workspace: {short(folder)}"))
    if made.filled:
        chapters = ", ".join(map(str, made.filled))
        print(
            tr(
                f"你还没写的第 {chapters} 章用的是书里的代码",
                f"chapters that you have not written came from the book: {chapters}",
            )
        )
    mine = [todo for todo in made.todos if todo.chapter == step.number]
    if len(mine) < len(made.todos):
        print(_in_one_line(set(made.todos) - set(mine), tr("更早的章还没写完", "left from before")))
    change = sum(todo.change for todo in mine)
    new = len(mine) - change
    line = tr(f"要写的函数：{new} 个", f"functions to write: {new}")
    if change:
        zh = f"{line}；要改的：{change} 个（旧代码还在，上面有标记）"
        line = tr(zh, f"{line}; to change: {change} (the old code is there, with a mark)")
    print(line)
    for todo in mine:
        sign = tr("改", "change") if todo.change else tr("写", "write")
        print(f"  {sign} {todo.path}:{todo.line}  {todo.name}")
    again = f"python3 tools/steps.py verify {step.number}{_folder_option(step, folder)}"
    print(tr(f"写完后运行：{again}", f"then run: {again}"))


def _in_one_line(todos: Iterable[Todo], what: str) -> str:
    files = Counter(todo.path.removeprefix("minisgl/") for todo in todos)
    return f"{what}: {', '.join(f'{path} {count}' for path, count in sorted(files.items()))}"


def _folder_option(step: Step, folder: Path) -> str:
    return "" if folder == default_workspace(step) else f" -o {_quoted(folder)}"


def _quoted(folder: Path) -> str:
    return shlex.quote(short(folder))


def print_verdict(book: Book, step: Step, folder: Path, verdict: Verdict) -> None:
    """Say how far the reader is, and what to do next."""
    if verdict.passed:
        print(tr(f"第 {step.number} 章通过。", f"Chapter {step.number} passes."))
        after = [other for other in book if other.number > step.number]
        if after:
            command = f"python3 tools/steps.py start {after[0].number} --from {_quoted(folder)}"
            print(tr(f"下一步：{command}", f"next: {command}"))
        return
    report = verdict.earlier or verdict.own
    red = [name for name, test in report.tests.items() if test.outcome not in SIGNS]
    waiting = [name for name in red if report.tests[name].outcome == "not run"]
    if verdict.earlier:
        count = len(red) - len(waiting) + len(report.broken)
        zh = f"退步：这一章过了，前面的 {count} 项却不再通过"
        print(tr(zh, f"regression: this chapter passes, {count} of the earlier tests no longer do"))
    else:
        print(counted(step, report))
    if waiting and not report.ended:
        zh = f"较小的测试还没全过，{len(waiting)} 项较大的这次没跑"
        print(tr(zh, f"{len(waiting)} larger tests wait until the smaller ones pass"))
    for change, what in (
        (False, tr("还没写的函数", "not written yet")),
        (True, tr("标着要改的函数", "marked as to be changed")),
    ):
        if left := [todo for todo in verdict.todos if todo.change == change]:
            print(_in_one_line(left, what))
    if report.ended and not red and not report.broken:
        print(f"✗ {report.ended}")
    elif not report.tests and not report.broken:
        print(report.output)
    elif red or report.broken:
        # What cannot even be imported first; else a small test, in the order of the file.
        name = next(iter(report.broken), "") or min(red, key=lambda name: report.tests[name].large)
        _print_next(book, folder, name, report)


def _print_next(book: Book, folder: Path, name: str, report: Report) -> None:
    # Not just `python`: the reader's shell may know none that has pytest.
    command = shlex.join([python(book.root), "-m", "pytest", name.split("[")[0]])
    print(tr(f"先让这一项变绿：{name}", f"make this one green first: {name}"))
    test = report.tests.get(name)
    place = f"  ({test.place})" if test and test.place else ""
    rows = [("", f"{test.reason if test else report.broken[name]}{place}")]
    if test:
        rows += [("", test.source), (tr("应为", "expected"), test.expected)]
        rows += [(tr("得到", "got"), test.got), *(("", line) for line in test.more)]
    for label, text in rows:
        if text:
            print(f"    {label}{': ' if label else ''}{text}")
    print(f"    cd {_quoted(folder)} && {command}")


def print_standing(book: Book) -> None:
    """Where the reader stands, and what is next."""
    done = passed()
    here = [step for step in book if step.number in done]
    print(
        tr(
            f"逐章写出一个推理引擎：{len(book.steps)} 章里已有 {len(here)} 章通过 verify。",
            f"An inference engine, chapter by chapter: {len(here)} of {len(book.steps)} pass.",
        )
    )
    left = [step for step in book if step.number not in done]
    begun = [step for step in left if default_workspace(step).is_dir()]
    after = [step for step in left if step.number > max(done, default=-1)]
    for step in begun or (after or left)[:1]:
        name = f"{step.number:02} {tr(step.title['zh'], step.title['en'])}"
        if begun:
            mine = short(default_workspace(step))
            print(tr(f"已开始：{name}", f"Begun: {name}"))
            print(tr(f"  你的文件夹：{mine}", f"  your folder: {mine}"))
            verb = f"verify {step.number}"
        else:
            print(tr(f"下一章：{name}", f"Next: {name}"))
            verb = f"start {step.number}"
            before = book.before(step)
            if before and (own := default_workspace(before)).is_dir():
                verb += f" --from {_quoted(own)}"
        print(f"  python3 tools/steps.py {verb}")
    print(tr("其他命令：python3 tools/steps.py --help", "More: python3 tools/steps.py --help"))
