"""A process that forks itself into one run after another: what it has loaded, each of them has.

To load torch and transformers takes longer than most runs do. `Nursery` is the side that asks;
the other side is this file as a script, which imports nothing of the tools.
"""

import contextlib
import gc
import importlib
import json
import os
import re
import runpy
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class Nursery:
    """Starts runs, one at a time."""

    def __init__(self, interpreter: str, modules: Sequence[str] = ()) -> None:
        """`modules`: what to load before a run whose files import it."""
        self._answers, theirs = os.pipe()
        # As in the conftest: a check shares the machine with others, and no thread is to spin.
        variables = {"OMP_WAIT_POLICY": "PASSIVE"} | os.environ
        self._process = subprocess.Popen(
            # -P: else the folder of this file would be searched for every module.
            [interpreter, "-P", __file__, str(theirs), *modules],
            env=variables | {"PYTHONPATH": "", "PYTHONUTF8": "1"},
            stdin=subprocess.PIPE,
            pass_fds=[theirs],
            start_new_session=True,
        )
        os.close(theirs)

    def begin(
        self, command: list[str], folder: str, variables: dict[str, str], files: list[str]
    ) -> int:
        """Start `python COMMAND` in a session of its own; return its process id.

        stdout and stderr go into `files`; where there are none, to where ours go.
        """
        wanted = [command, folder, variables, files]
        assert self._process.stdin
        self._process.stdin.write(json.dumps(wanted).encode() + b"\n")
        self._process.stdin.flush()
        return self._number()

    def ended(self, seconds: float) -> int | None:
        """Wait so long at most; return the exit status, None while the run goes on."""
        if not select.select([self._answers], [], [], seconds)[0]:
            return None
        return self._number()

    def _number(self) -> int:
        told = os.read(self._answers, 4)
        if not told:
            raise ChildProcessError(f"{Path(__file__).name} has ended")
        return int.from_bytes(told, sys.byteorder, signed=True)

    def close(self) -> None:
        """End it; a run that goes on is to be ended before."""
        with self._process:
            os.close(self._answers)


def _main() -> None:
    answers, modules = int(sys.argv[1]), sys.argv[2:]

    def answer(number: int) -> None:
        try:
            os.write(answers, number.to_bytes(4, sys.byteorder, signed=True))
        except BrokenPipeError:  # an interrupt has come before the run
            os._exit(1)

    while line := sys.stdin.readline():
        command, folder, variables, files = json.loads(line)
        _load(folder, modules)
        child = os.fork()
        if not child:
            os.setsid()
            answer(os.getpid())
            os.close(answers)
            _become(command, folder, variables, files)
            return
        answer(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _load(folder: str, modules: list[str]) -> None:
    paths = Path(folder).rglob("*.py") if modules else ()
    text = "\n".join(path.read_text("utf-8", "replace") for path in paths)
    for module in modules:
        if re.search(rf"^\s*(?:import|from) {module.split('.')[0]}\b", text, re.MULTILINE):
            with contextlib.suppress(ImportError):  # which the run will say
                importlib.import_module(module)
    gc.freeze()  # no collection of a run need look at it


def _become(command: list[str], folder: str, variables: dict[str, str], files: list[str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in enumerate(files, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.path[:0] = variables["PYTHONPATH"].split(os.pathsep)
    if command[0] == "-m":
        sys.path.insert(0, folder)
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        script = Path(folder, command[0])
        sys.path.insert(0, str(script.parent))
        sys.argv = [str(script), *command[1:]]
        runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    _main()
