"""A run is a list of stages; each says its name, its time, and what failed."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tools.devlib.environment import Environment
from tools.devlib.process import Failure, run, shown
from tools.lang import tr


class Stage(NamedTuple):
    """One named part of a run; `work` returns an empty text, or what failed."""

    name: str
    work: Callable[[], str]
    needed: bool = False  # nothing after it makes sense without it


class Result(NamedTuple):
    """How a stage went; an empty `failure` means well."""

    name: str
    seconds: float
    failure: str


def run_stages(stages: list[Stage]) -> list[Result]:
    """Run the stages in order, say the name and time of each, stop at a needed one that fails."""
    results = []
    for number, stage in enumerate(stages, 1):
        print(f"── [{number}/{len(stages)}] {stage.name}", flush=True)
        start = time.perf_counter()
        try:
            failure = stage.work()
        except Failure as error:
            failure = str(error)
        seconds = time.perf_counter() - start
        results.append(Result(stage.name, seconds, failure))
        verdict = f"✗ {failure}" if failure else "✓"
        print(f"   {stage.name}: {verdict}  ({seconds:.1f} s)", flush=True)
        if failure and stage.needed:
            break
    return results


def report(results: list[Result]) -> int:
    """Print the times and what failed; return the exit status."""
    print("── " + " · ".join(f"{r.name} {r.seconds:.1f} s" for r in results), flush=True)
    total = sum(result.seconds for result in results)
    failed = [result for result in results if result.failure]
    for result in failed:
        print(tr(f"失败：{result.name}：", f"failed: {result.name}: ") + result.failure)
    word = tr("有失败", "failed") if failed else tr("全部通过", "all passed")
    print(f"{word} ({total:.1f} s)", flush=True)
    return 1 if failed else 0


def command_stage(environment: Environment, name: str, *words: str) -> Stage:
    """A stage that is one program run by the environment's Python."""
    command = [str(environment.python), *words]

    def work() -> str:
        status, _ = run(command, environment.root)
        return failed_command(command, environment.root) if status else ""

    return Stage(name, work)


def failed_command(command: list[str], root: Path) -> str:
    repeat = shown(command, root)
    return tr(f"见上面的输出；单独重跑：{repeat}", f"see above; to repeat: {repeat}")


def closing_line(text: str) -> str:
    """pytest's closing line in what it printed, without colours; empty if there is none."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = re.findall(r"^=+ (?:.* in [0-9.]+s.*|no tests ran.*) =+\s*$", plain, re.MULTILINE)
    return lines[-1].strip() if lines else ""


def pytest_stage(environment: Environment, closing: list[str]) -> Stage:
    """All tests but those that the steps' stage has proved, by three workers.

    Many wait for a browser, a server or a box: two would leave two cores idle half of the time.
    A file's tests stay together, for what they share takes longer to make than most of them take.
    Puts pytest's closing line into `closing`.
    """
    colour = "yes" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else "auto"
    command = [str(environment.python), "-m", "pytest", f"--color={colour}"]
    command += ["--without-proved", "-n", "3", "--dist", "loadfile"]

    def work() -> str:
        status, text = run(command, environment.root, tee="stdout")
        closing.append(closing_line(text))
        return failed_command(command, environment.root) if status else ""

    return Stage("pytest", work)
