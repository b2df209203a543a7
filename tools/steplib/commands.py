"""The commands of `tools/steps.py`: read the arguments, call the library, print."""

import argparse
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tools.arguments import Argument, parser_of
from tools.environment import pipe_may_close
from tools.lang import tr
from tools.store import tell_language

from .build import build, live_tests
from .check import Checker, slow_here
from .difference import BUDGET_LINES, budget, unified
from .earlycode import promise_problems, promises_to_come
from .errors import StepError
from .forward import keep, propagate
from .live import Live
from .manifest import Book, load_steps
from .progress import note_pass
from .record import record
from .results import result_of
from .run import environment, python, run_tests
from .storage import storage_problems
from .symbols import symbol_source
from .tree import marks, render_tree, tree
from .verdict import (
    default_workspace,
    print_finding,
    print_standing,
    print_start,
    print_verdict,
)
from .verify import verify
from .workspace import start

Command = Callable[[Book, argparse.Namespace], int]


def main(root: Path, description: str, arguments: Sequence[str] | None = None) -> int:
    """Run the command on the command line; return the exit status (2: bad input, one line)."""
    options = parser(description).parse_args(arguments)
    tell_language()
    try:
        with pipe_may_close(), _ending_children():
            command = COMMANDS[options.command][0] if options.command else _standing
            return command(load_steps(root), options)
    except StepError as error:
        print(f"steps.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"steps.py: {place}{error.strerror or error}", file=sys.stderr)
        return 2


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


def parser(description: str) -> argparse.ArgumentParser:
    """The command line's grammar."""
    texts = {name: text for name, (_, text) in COMMANDS.items()}
    return parser_of("steps.py", description, texts, ARGUMENTS)


def _standing(book: Book, options: argparse.Namespace) -> int:
    print_standing(book)
    return 0


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
    step = book[options.number]
    mine = options.folder or default_workspace(step)
    yours = options.folder or (not options.book and mine.is_dir())
    folder = mine.resolve() if yours else build(book, options.number)
    if not yours:  # of a reader's own code the example says it itself
        print(tr("运行的是书里的代码", "this runs the book's code"), file=sys.stderr, flush=True)
    command = [python(book.root), step.main]
    return subprocess.run(command, cwd=folder, env=environment(folder), check=False).returncode


def _test(book: Book, options: argparse.Namespace) -> int:
    live = live_tests(book, options.number)
    slow = slow_here(book, options.number)
    report = run_tests(python(book.root), build(book, options.number), live, slow, show=True)
    problems = [problem for path in live for problem in result_of(report, path).problems]
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
    for found in checker.check(numbers):
        print_finding(found, len(tree(book, found.step.number)))
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
    made = start(book, step.number, folder, options.mine, again=options.again)
    print_start(step, folder, made)
    return 0


def _verify(book: Book, options: argparse.Namespace) -> int:
    step = book[options.number]
    folder = options.folder or default_workspace(step)
    with Live(step, folder) as live:
        verdict = verify(book, step.number, folder, live)
    print_verdict(book, step, folder, verdict)
    if verdict.passed:
        note_pass(step)
    return 0 if verdict.passed else 1


COMMANDS: dict[str, tuple[Command, str]] = {
    "start": (_start, "make a workspace in which you write a chapter"),
    "verify": (_verify, "run a chapter's tests on your workspace"),
    "run": (_run, "run a chapter's program, on your workspace where there is one"),
    "list": (_list, "the chapters, and how much each adds"),
    "tree": (_tree, "the files of the package after a chapter"),
    "diff": (_diff, "what a chapter changed"),
    "show": (_show, "a file, or one name in it, as it is after a chapter"),
    "build": (_build, "write a chapter's state into a folder"),
    "test": (_test, "run the tests that hold after a chapter, on the book's code"),
    "check": (_check, "prove the chapters: they build, run, print what is recorded, pass"),
    "record": (_record, "record what a chapter's program prints"),
    "keep": (_keep, "store the committed version of files that a new chapter rewrites"),
    "propagate": (_propagate, "merge a fix in an early version into the later ones"),
}
ARGUMENTS: list[Argument] = [
    (
        "tree build run test diff show start verify propagate",
        "number",
        {"type": int, "metavar": "N", "help": "the chapter"},
    ),
    ("check", "number", {"type": int, "nargs": "*", "metavar": "N", "help": "chapters, else all"}),
    ("record", "number", {"type": int, "nargs": "+", "metavar": "N", "help": "the chapters"}),
    ("show", "path", {"metavar": "PATH[:NAME]", "help": "such as minisgl/core.py:Req"}),
    ("propagate", "path", {"metavar": "PATH", "help": "such as minisgl/core.py"}),
    ("diff", "path", {"nargs": "?", "metavar": "PATH", "help": "one file, else all of them"}),
    ("check", "--all", {"action": "store_true", "help": "run again what is known"}),
    (
        "build start verify run",
        "-o",
        {
            "dest": "folder",
            "type": Path,
            "metavar": "DIR",
            "help": "the folder, else the usual one",
        },
    ),
    ("run", "--book", {"action": "store_true", "help": "the book's code, not yours"}),
    (
        "start",
        "--from",
        {"dest": "mine", "type": Path, "metavar": "DIR", "help": "go on from your own folder"},
    ),
    ("start", "--again", {"action": "store_true", "help": "start over; the old folder is kept"}),
]
