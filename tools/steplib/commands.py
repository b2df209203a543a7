"""The commands of `tools/steps.py`: read the arguments, call the library, print."""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tools.lang import tr

from .build import build, live_tests
from .check import Checker, problems_of, slow_here
from .difference import BUDGET_LINES, budget, unified
from .earlycode import promise_problems, promises_to_come
from .errors import StepError
from .forward import keep, propagate
from .manifest import Book, load_steps
from .progress import note_pass
from .record import record
from .run import environment, python, run_tests
from .storage import storage_problems
from .symbols import symbol_source
from .tree import marks, render_tree, tree
from .verdict import default_workspace, print_finding, print_start, print_verdict
from .workspace import start, verify

Command = Callable[[Book, argparse.Namespace], int]


def main(root: Path, description: str, arguments: Sequence[str] | None = None) -> int:
    """Run the command on the command line; return the exit status (2: bad input, one line)."""
    options = _parser(description).parse_args(arguments)
    try:
        with _ending_children():
            return COMMANDS[options.command](load_steps(root), options)
    except StepError as error:
        print(f"steps.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of a pipe has gone; what is still buffered goes nowhere, without a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


@contextmanager
def _ending_children() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the stack, so that the processes of a run end with it.

    They have a session of their own, and no signal to this process reaches them.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_DFL:  # else ignored, as under nohup
                before[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "steps.py", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        one = commands.add_parser(name)
        if name in ("check", "record"):
            one.add_argument("number", type=int, nargs="*" if name == "check" else "+")
        elif name not in ("list", "keep"):
            one.add_argument("number", type=int)
        if name in ("show", "propagate"):
            one.add_argument("path")
        if name == "diff":
            one.add_argument("path", nargs="?")
        if name == "check":
            one.add_argument("--all", action="store_true", help="run again what is known")
        if name in ("build", "start", "verify"):
            one.add_argument("-o", dest="folder", type=Path, metavar="DIR")
        if name == "start":
            one.add_argument("--from", dest="mine", type=Path, metavar="DIR", help="go on from it")
    return parser


def _list(book: Book, options: argparse.Namespace) -> int:
    for step in book:
        found = list(marks(book, step.number).values())
        counts = f"+{found.count('new')} ~{found.count('changed')} -{found.count('removed')}"
        lines = budget(book, step.number)
        title = tr(step.title["zh"], step.title["en"])
        print(f"{step.name:<22} {counts:<10} {lines:>4}/{BUDGET_LINES}  {title}")
    zh = "文件：+ 新建 ~ 修改 - 移走；新增或修改的代码行 / 每章的预算（超出的理由在 step.toml）"
    en = "files: + new, ~ changed, - removed; lines of new or changed code / a chapter's budget"
    print(tr(zh, f"{en} (step.toml says why one is over it)"))
    return 0


def _tree(book: Book, options: argparse.Namespace) -> int:
    found = marks(book, options.number)
    labels = {
        "new": tr("本章新建", "new"),
        "changed": tr("本章修改", "changed"),
        "removed": tr("本章移走", "removed"),
    }
    kinds = list(found.values())
    kept = {path: place for path, place in found.items() if place != "removed"}
    new, changed = kinds.count("new"), kinds.count("changed")
    print(
        tr(
            f"到这一章为止的文件：{len(kept)} 个（新建 {new}，修改 {changed}，提前引入 0）",
            f"files up to this chapter: {len(kept)} ({new} new, {changed} changed, 0 early)",
        )
    )
    if found:
        print("\n" + render_tree(found, labels))
    return 0


def _build(book: Book, options: argparse.Namespace) -> int:
    print(build(book, options.number, options.folder))
    return 0


def _diff(book: Book, options: argparse.Namespace) -> int:
    text = unified(book, options.number, options.path)
    if options.path and not text and options.path not in tree(book, options.number):
        raise StepError(f"step {options.number} has no {options.path}")
    print(text)
    return 0


def _show(book: Book, options: argparse.Namespace) -> int:
    path, _, symbol = options.path.partition(":")
    found = tree(book, options.number)
    if path not in found:
        raise StepError(f"step {options.number} has no {path}; `tree {options.number}` lists it")
    text = found[path].read().decode("utf-8")
    print(symbol_source(text, symbol, path).text if symbol else text.rstrip("\n"))
    return 0


def _run(book: Book, options: argparse.Namespace) -> int:
    folder = build(book, options.number)
    command = [python(book.root), book[options.number].main]
    return subprocess.run(command, cwd=folder, env=environment(folder), check=False).returncode


def _test(book: Book, options: argparse.Namespace) -> int:
    live = live_tests(book, options.number)
    slow = slow_here(book, options.number)
    report = run_tests(python(book.root), build(book, options.number), live, slow, show=True)
    problems = [problem for path in live for problem in problems_of(report, path)]
    for problem in problems:
        print(f"✗ {problem}")
    return 1 if problems else 0


def _check(book: Book, options: argparse.Namespace) -> int:
    begun = time.monotonic()
    numbers = options.number or [step.number for step in book]
    problems = [*storage_problems(book), *promise_problems(book)]
    for problem in problems:
        print(f"✗ {problem}")
    checker = Checker(book, forced=options.all)
    total = cached = 0
    for number in numbers:
        step_begun = time.monotonic()
        found = checker.check(number)
        print_finding(found, len(tree(book, number)), time.monotonic() - step_begun)
        problems += found.problems
        total, cached = total + found.tests, cached + found.cached_tests
    for name, chapter in promises_to_come(book).items():
        print(f"  ahead, to come: {name} (chapter {chapter})")
    verdict = f"{len(problems)} problems" if problems else "proved"
    seconds = time.monotonic() - begun
    print(f"{len(numbers)} steps, {total} tests ({cached} known): {verdict} in {seconds:.1f} s")
    return 1 if problems else 0


def _record(book: Book, options: argparse.Namespace) -> int:
    for number in options.number:
        for path in record(book, number):
            print(path.relative_to(book.root).as_posix())
    return 0


def _keep(book: Book, options: argparse.Namespace) -> int:
    for line in keep(book):
        print(line)
    return 0


def _propagate(book: Book, options: argparse.Namespace) -> int:
    for version, conflicts in propagate(book, options.number, options.path):
        place = version.location.relative_to(book.root).as_posix()
        print(f"{version.step.label}: {place}: {'conflicts' if conflicts else 'merged'}")
        if conflicts:
            print(conflicts)
            print(
                f"resolve them in {place}, then: python3 tools/steps.py propagate "
                f"{version.step.number} {version.path}"
            )
            return 1
    return 0


def _start(book: Book, options: argparse.Namespace) -> int:
    step = book[options.number]
    folder = options.folder or default_workspace(step)
    print_start(step, folder, start(book, step.number, folder, options.mine))
    return 0


def _verify(book: Book, options: argparse.Namespace) -> int:
    step = book[options.number]
    folder = options.folder or default_workspace(step)
    verdict = verify(book, step.number, folder)
    print_verdict(book, step, folder, verdict)
    if verdict.passed:
        note_pass(step)
    return 0 if verdict.passed else 1


COMMANDS: dict[str, Command] = {
    "list": _list,
    "tree": _tree,
    "diff": _diff,
    "show": _show,
    "build": _build,
    "run": _run,
    "test": _test,
    "start": _start,
    "verify": _verify,
    "check": _check,
    "record": _record,
    "keep": _keep,
    "propagate": _propagate,
}
