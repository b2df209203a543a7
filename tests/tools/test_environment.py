"""A command typed with a Python that lacks packages goes on with the project's own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.environment import own_python

ROOT = Path(__file__).resolve().parents[2]
PYTHON = sys.executable
PROGRAM = """
import sys
from pathlib import Path

sys.path.insert(0, {root!r})
from tools.environment import use_environment

use_environment(Path({project!r}), "json", {package!r})
print("here")
"""


def said(project: Path, package: str) -> str:
    """What `program.py a b` prints, where the environment prints its arguments."""
    own = project / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.write_text('#!/bin/sh\necho there "$@"\n')
    own.chmod(0o755)
    program = project / "program.py"
    program.write_text(PROGRAM.format(root=str(ROOT), project=str(project), package=package))
    command = [PYTHON, "program.py", "a", "b"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=True).stdout


def test_a_python_without_a_package_hands_over(tmp_path: Path) -> None:
    assert said(tmp_path, "no_such_package") == "there program.py a b\n"


def test_a_python_that_has_all_goes_on(tmp_path: Path) -> None:
    assert said(tmp_path, "json") == "here\n"


def test_an_environment_that_cannot_be_looked_at_is_none(tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to("x" * 300)  # an error to `stat`, as a closed folder is
    assert own_python(tmp_path) is None


@pytest.mark.parametrize(
    "command",
    [
        "tools/steps.py diff 5",  # more than is kept back
        "tools/steps.py list",
        "-m tools.book expand ch05_kv_cache",
        "tools/figures.py list",
        "tools/dev.py doctor",
        "practice/judge.py list",
    ],
)
def test_a_command_whose_reader_has_gone_ends_without_a_word(command: str, tmp_path: Path) -> None:
    heard, said = os.pipe()
    os.close(heard)
    settings = os.environ | {"PYTHONUNBUFFERED": "", "MINISGL_HOME": str(tmp_path)}
    words = [PYTHON, *command.split()]
    done = subprocess.run(words, cwd=ROOT, env=settings, stdout=said, stderr=subprocess.PIPE)
    os.close(said)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")
