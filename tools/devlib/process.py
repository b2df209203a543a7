"""Running other programs, and saying in one line why one of them failed."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools.lang import tr


class Failure(Exception):
    """Something that the user can mend; its text is one line: what failed and what to do."""


def run(
    command: list[str], root: Path, tee: str = "", take: Callable[[bytes], None] | None = None
) -> tuple[int, str]:
    """Run a command in `root`; return its exit status and the end of what passed through here.

    The program keeps the terminal (and with it its colours and progress bars) for every stream but
    the one that `tee` names, "stdout" or "stderr". With `take`, both pass through here and go to
    it instead of the terminal.
    """
    stdout = subprocess.PIPE if take or tee == "stdout" else None
    stderr = subprocess.STDOUT if take else subprocess.PIPE if tee == "stderr" else None
    sys.stdout.flush()
    tail = b""
    process = subprocess.Popen(command, cwd=root, stdout=stdout, stderr=stderr)
    try:
        source = process.stdout or process.stderr
        if source is not None:
            sink = sys.stdout if tee == "stdout" else sys.stderr
            while piece := os.read(source.fileno(), 65536):
                if take:
                    take(piece)
                else:
                    sink.buffer.write(piece)
                    sink.flush()
                tail = (tail + piece)[-65536:]
        return process.wait(), tail.decode("utf-8", "replace")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def shown(command: list[str], root: Path) -> str:
    """The command as a person would type it in `root`."""
    prefix = str(root) + os.sep
    return " ".join(shlex.quote(word.removeprefix(prefix)) for word in command)


def reason(text: str, folder: Path) -> str:
    """Why a program failed, read from what it printed: one line that says what to do."""
    lowered = text.lower()
    if "no space left" in lowered:
        temporary = tempfile.gettempdir()
        return tr(
            f"磁盘已满（{folder} 或临时目录 {temporary}）：腾出空间后重新运行",
            f"no space left for {folder} or in {temporary}: free some and run again",
        )
    if "read-only file system" in lowered or "permission denied" in lowered:
        return tr(f"{folder} 不可写：换一个可写的目录", f"{folder} cannot be written to")
    signs = ("name resolution", "connection", "timed out", "proxy", "ssl", "unreachable")
    if any(sign in lowered for sign in signs):
        return tr(
            "连不上软件源：检查网络和 pip 的代理设置（pip config list），然后重新运行",
            "the package index cannot be reached: check the network and pip's proxy settings "
            "(pip config list), then run again",
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("[notice]")]  # of a newer pip
    errors = [line for line in lines if line.lower().startswith("error")] or lines
    return errors[-1] if errors else tr("原因见上面的输出", "see the output above")


def remove(path: Path) -> bool:
    """Remove a file, a link or a folder; say whether there was something."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        return False
    return True
