"""The commands of `practice/judge.py`: read the arguments, call the library, print."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from practice.judgelib import engine, overview, sessions, workspace
from practice.judgelib.catalogue import Catalogue, Problem, load_catalogue
from practice.judgelib.core import judge
from practice.judgelib.store import Progress
from practice.judgelib.text import JudgeError
from practice.judgelib.verdict import render
from tools.lang import tr
from tools.steplib import StepError, symbol_source
from tools.store import StoreError

Command = Callable[[Catalogue, argparse.Namespace], int]


def main(root: Path, description: str, arguments: Sequence[str] | None = None) -> int:
    """Run the command on the command line; return the exit status (2: bad input, one line)."""
    options = _parser(description).parse_args(arguments)
    options.root = root
    try:
        return COMMANDS[options.command or "next"](load_catalogue(root), options)
    except (JudgeError, StepError, StoreError) as error:
        print(f"judge.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            sys.stderr.close()
            return 130
        print(f"judge.py: {error.filename or ''}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except RuntimeError as error:  # SandboxError: there is no box to be had
        if type(error).__name__ != "SandboxError":
            raise
        print(f"judge.py: {error}", file=sys.stderr)
        return 2


def _parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "judge.py", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in COMMANDS:
        if name == "next":
            continue
        one = commands.add_parser(name)
        if name == "audit":
            one.add_argument("id", nargs="*")
            one.add_argument("--quick", action="store_true", help="one seed, ten mutants")
            one.add_argument("--write", action="store_true", help="bring the samples up to date")
        elif name not in ("list", "status", "doctor"):
            one.add_argument("id")
        if name in ("run", "submit"):
            one.add_argument("file", nargs="?", type=Path, metavar="FILE")
            one.add_argument("--json", action="store_true", help="the result as one document")
        if name == "run":
            one.add_argument("--seed", type=int, help="all groups of a seed that a verdict named")
        if name in ("run", "submit", "watch"):
            one.add_argument("--strict", action="store_true", help="a fresh box for every job")
        if name in ("run", "submit", "watch", "audit"):
            one.add_argument("--level", type=int, choices=(3, 2, 0), help="the sandbox level")
        if name == "start":
            one.add_argument("--again", action="store_true", help="begin anew, keep the old file")
        if name == "solution":
            one.add_argument("--spoil", action="store_true", help="before an AC; recorded")
    return parser


def _next(catalogue: Catalogue, options: argparse.Namespace) -> int:
    with Progress() as progress:
        _tell(progress)
        print("\n".join(overview.next_lines(catalogue, progress)))
    return 0


def _list(catalogue: Catalogue, options: argparse.Namespace) -> int:
    with Progress() as progress:
        _tell(progress)
        print("\n".join(overview.list_lines(catalogue, progress)))
    return 0


def _status(catalogue: Catalogue, options: argparse.Namespace) -> int:
    with Progress() as progress:
        _tell(progress)
        print("\n".join(overview.status_lines(catalogue, progress)))
    return 0


def _show(catalogue: Catalogue, options: argparse.Namespace) -> int:
    problem = catalogue[options.id]
    text = str(problem.statement())
    for mark in ("<!-- samples -->\n", "<!-- /samples -->\n"):
        text = text.replace(mark, "")
    print(text)
    return 0


def _start(catalogue: Catalogue, options: argparse.Namespace) -> int:
    problem = catalogue[options.id]
    path = workspace.start(problem, again=options.again)
    print(tr(f"写在这里：{workspace.shown(path)}", f"write here: {workspace.shown(path)}"))
    if problem.kind == "engine" and problem.step:
        names = ", ".join(problem.step.symbols)
        print(tr(f"要写的：{names}", f"to be written: {names}"))
    print(tr("题目：", "statement: ") + f"python practice/judge.py show {problem.id}")
    print(tr("试样例：", "try samples: ") + f"python practice/judge.py run {problem.id}")
    print(tr("提交：", "submit: ") + f"python practice/judge.py submit {problem.id}")
    return 0


def _run(catalogue: Catalogue, options: argparse.Namespace) -> int:
    problem = catalogue[options.id]
    source = workspace.read(problem, options.file)
    groups = ["sample"] if options.seed is None else None
    seed = sessions.fresh_seed() if options.seed is None else options.seed
    with sessions.box_for(problem, options.level, options.strict) as box:
        verdict = judge(problem, source, box=box, seed=seed, groups=groups)
    if options.json:
        print(json.dumps({"problem": problem.id, **verdict.as_json()}, ensure_ascii=False))
    else:
        print(render(verdict, problem.id))
        if verdict.accepted and groups:
            print(tr("样例对了；全部用例：", "the samples are right; all cases: "), end="")
            print(f"python practice/judge.py submit {problem.id}")
    return 0 if verdict.accepted else 1


def _submit(catalogue: Catalogue, options: argparse.Namespace) -> int:
    problem = catalogue[options.id]
    source = workspace.read(problem, options.file)
    with sessions.box_for(problem, options.level, options.strict) as box:
        try:
            progress: Progress | None = Progress()
        except StoreError as error:
            print(f"judge.py: {error}", file=sys.stderr)
            progress = None
        if progress:
            _tell(progress)
        verdict, notes = sessions.submit(problem, source, box, progress)
        if progress:
            progress.store.close()
    if options.json:
        extra = {"notes": [str(note) for note in notes]}
        print(json.dumps({"problem": problem.id, **verdict.as_json(), **extra}, ensure_ascii=False))
    else:
        print(render(verdict, problem.id))
        for note in notes:
            print(note)
        if verdict.group and not verdict.accepted and verdict.group != "sample":
            again = f"python practice/judge.py run {problem.id} --seed {verdict.seed}"
            print(tr(f"重现：{again}", f"to repeat: {again}"))
    return 0 if verdict.accepted else 1


def _hint(catalogue: Catalogue, options: argparse.Namespace) -> int:
    problem = catalogue[options.id]
    with Progress() as progress:
        _tell(progress)
        taken = progress.standing(problem.id).hints
        number = min(taken + 1, len(problem.hints))
        if number > taken:
            progress.take_hint(problem.id, number)
    for index in range(number):
        print(tr(f"提示 {index + 1}：", f"hint {index + 1}: ") + str(problem.hints[index]))
    left = len(problem.hints) - number
    print(tr(f"（还有 {left} 条）", f"({left} more)"))
    return 0


def _solution(catalogue: Catalogue, options: argparse.Namespace) -> int:
    problem = catalogue[options.id]
    with Progress() as progress:
        _tell(progress)
        accepted = progress.standing(problem.id).accepted
        if not accepted and not options.spoil:
            again = f"python practice/judge.py solution {problem.id} --spoil"
            raise JudgeError(
                f"通过之后才显示；现在就要看：{again}（会记录）",
                f"shown after an AC; to see it now: {again} (this is recorded)",
            )
        progress.show_solution(problem.id, spoiled=not accepted)
    print(_solution_text(problem))
    return 0


def _solution_text(problem: Problem) -> str:
    text = engine.solution(problem)
    if not problem.step:
        return text.rstrip("\n")
    place = problem.step
    parts = [(symbol, symbol_source(text, symbol).text) for symbol in place.symbols]
    return "\n\n".join(f"# {place.path}, {symbol}\n{part}" for symbol, part in parts)


def _watch(catalogue: Catalogue, options: argparse.Namespace) -> int:
    from practice.judgelib.watch import watch

    return watch(catalogue[options.id], options.level, options.strict)


def _doctor(catalogue: Catalogue, options: argparse.Namespace) -> int:
    from practice.judgelib.doctor import doctor

    return doctor(catalogue)


def _audit(catalogue: Catalogue, options: argparse.Namespace) -> int:
    from practice.judgelib.auditing import run_audit

    return run_audit(catalogue, options.id, options.quick, options.write, options.level)


def _tell(progress: Progress) -> None:
    """What happened to the record since the last call, one line each."""
    if progress.store.notice:
        print(f"judge.py: {progress.store.notice}", file=sys.stderr)
    for row in progress.interrupted():
        zh = f"上次对 {row['problem']} 的提交在判题时中断了；代码已保存，请重新提交"
        en = f"judging a submission for {row['problem']} was interrupted; submit it again"
        print("judge.py: " + tr(zh, en), file=sys.stderr)


COMMANDS: dict[str, Command] = {
    "next": _next,
    "list": _list,
    "show": _show,
    "start": _start,
    "run": _run,
    "submit": _submit,
    "watch": _watch,
    "hint": _hint,
    "solution": _solution,
    "status": _status,
    "doctor": _doctor,
    "audit": _audit,
}
