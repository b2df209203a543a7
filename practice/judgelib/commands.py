"""The commands of `practice/judge.py`: read the arguments, call the library, print."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from practice.judgelib import engine, overview, sessions, terminal, workspace
from practice.judgelib.catalogue import Catalogue, load_catalogue
from practice.judgelib.core import judge, try_samples
from practice.judgelib.options import parser
from practice.judgelib.samples import without_marks
from practice.judgelib.text import COMMAND, JudgeError
from practice.judgelib.verdict import render
from tools.environment import NO_ENVIRONMENT, pipe_may_close
from tools.lang import tr
from tools.steplib import StepError
from tools.store import StoreError, tell_language

Command = Callable[[Catalogue, argparse.Namespace], int]


def main(root: Path, description: str, arguments: Sequence[str] | None = None) -> int:
    """Run the command on the command line; return the exit status (2: bad input, one line)."""
    options = parser(description).parse_args(arguments)
    tell_language()
    options.root = root
    terminal.speak_any_encoding()
    try:
        with pipe_may_close():
            return COMMANDS[options.command](load_catalogue(root), options)
    except (JudgeError, StepError, StoreError) as error:
        return terminal.complain(str(error))
    except OSError as error:
        terminal.give_up_stdout()
        place = f"{error.filename}: " if error.filename else ""
        return terminal.complain(f"{place}{error.strerror or error}")
    except KeyboardInterrupt:
        return 130


def _next(catalogue: Catalogue, options: argparse.Namespace) -> int:
    with terminal.open_progress() as progress:
        print("\n".join(overview.next_lines(catalogue, progress)))
    return 0


def _list(catalogue: Catalogue, options: argparse.Namespace) -> int:
    with terminal.open_progress() as progress:
        print("\n".join(overview.list_lines(catalogue, progress)))
    return 0


def _status(catalogue: Catalogue, options: argparse.Namespace) -> int:
    with terminal.open_progress() as progress:
        print("\n".join(overview.status_lines(catalogue, progress)))
    return 0


def _show(catalogue: Catalogue, options: argparse.Namespace) -> int:
    problem = catalogue[options.id]
    print(without_marks(str(problem.statement())))
    return 0


def _start(catalogue: Catalogue, options: argparse.Namespace) -> int:
    problem = catalogue[options.id]
    path = workspace.start(problem, again=options.again)
    print(tr(f"写在这里：{workspace.shown(path)}", f"write here: {workspace.shown(path)}"))
    if problem.kind == "engine" and problem.step:
        names = ", ".join(problem.step.symbols)
        print(tr(f"要写的：{names}", f"to be written: {names}"))
    print(tr("题目：", "statement: ") + f"{COMMAND} show {problem.id}")
    # Of a `predict` there is nothing to try: `run` looks at the form of the answers.
    predicts = problem.kind == "predict"
    words = ("检查格式：", "check the form: ") if predicts else ("试样例：", "try samples: ")
    print(tr(*words) + f"{COMMAND} run {problem.id}")
    print(tr("提交：", "submit: ") + f"{COMMAND} submit {problem.id}")
    return 0


def _run(catalogue: Catalogue, options: argparse.Namespace) -> int:
    problem = catalogue[options.id]
    source = workspace.read(problem, options.file)
    with sessions.box_for(problem, options.level, options.strict) as box:
        # A prediction has one case, whatever the seed: only a submission looks at it.
        if options.seed is None or problem.kind == "predict":
            verdict = try_samples(problem, source, box=box, seed=sessions.fresh_seed())
        else:
            verdict = judge(problem, source, box=box, seed=options.seed)
    if options.json:
        print(json.dumps({"problem": problem.id, **verdict.as_json()}, ensure_ascii=False))
    else:
        # Of a `predict` only the form was looked at, which is no acceptance.
        formal = verdict.accepted and not verdict.cases
        print(verdict.message if formal else render(verdict, problem.id))
        if verdict.accepted and options.seed is None:
            print(tr("提交：", "submit: ") + f"{COMMAND} submit {problem.id}")
    return 0 if verdict.accepted else 1


def _submit(catalogue: Catalogue, options: argparse.Namespace) -> int:
    problem = catalogue[options.id]
    source = workspace.read(problem, options.file)
    with (
        sessions.box_for(problem, options.level, options.strict) as box,
        terminal.open_progress() as progress,
    ):
        verdict, notes = sessions.submit(problem, source, box, progress)
    if options.json:
        extra = {"notes": [str(note) for note in notes]}
        print(json.dumps({"problem": problem.id, **verdict.as_json(), **extra}, ensure_ascii=False))
    else:
        print(render(verdict, problem.id))
        for note in notes:
            print(note)
        if verdict.group and not verdict.accepted and verdict.group != "sample":
            again = f"{COMMAND} run {problem.id} --seed {verdict.seed}"
            print(tr(f"重现：{again}", f"to repeat: {again}"))
    return 0 if verdict.accepted else 1


def _hint(catalogue: Catalogue, options: argparse.Namespace) -> int:
    problem = catalogue[options.id]
    with terminal.open_progress() as progress:
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
    with terminal.open_progress() as progress:
        accepted = progress.standing(problem.id).accepted
        if not accepted and not options.spoil:
            again = f"{COMMAND} solution {problem.id} --spoil"
            raise JudgeError(
                f"通过之后才显示；现在就要看：{again}（会记录）",
                f"shown after an AC; to see it now: {again} (this is recorded)",
            )
        progress.show_solution(problem.id, spoiled=not accepted)
    print(engine.shown_solution(problem))
    return 0


def _watch(catalogue: Catalogue, options: argparse.Namespace) -> int:
    from practice.judgelib.watch import watch

    return watch(catalogue[options.id], options.level, options.strict)


def _doctor(catalogue: Catalogue, options: argparse.Namespace) -> int:
    from practice.judgelib.doctor import doctor

    return doctor(catalogue)


def _audit(catalogue: Catalogue, options: argparse.Namespace) -> int:
    from practice.judgelib.auditing import run_audit

    return run_audit(catalogue, options.id, options.quick, options.write, options.level)


def _serve(catalogue: Catalogue, options: argparse.Namespace) -> int:
    try:
        from practice.web.serve import serve
    except ModuleNotFoundError:
        raise JudgeError(*NO_ENVIRONMENT) from None
    return serve(options.root, options.host, options.port, options.level)


COMMANDS: dict[str | None, Command] = {
    None: _next,
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
    "serve": _serve,
}
