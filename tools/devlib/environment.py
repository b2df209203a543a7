"""The virtual environment `.venv`: made once, kept up to date, made again when it is broken."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from tools.devlib.process import Failure, reason, remove, run
from tools.lang import tr

OLDEST = (3, 11)
GIB = 1 << 30
# A CPU environment takes 1.3 GiB, with what pip unpacks on the way a little more.
ENVIRONMENT_BYTES = 2 * GIB


class Environment:
    """The virtual environment of one checkout, and the stamp that says what it was made from."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self.stamp = self.folder / "minisgl-environment.json"

    def wanted(self, torch_index: str) -> dict[str, str]:
        """What a complete environment's stamp says; the index is the one torch came from."""
        digest = hashlib.sha256()
        for name in ("pyproject.toml", "constraints.txt"):
            digest.update((self.root / name).read_bytes())
        # The root too: an editable install and the scripts in .venv/bin hold its path.
        return {"files": digest.hexdigest(), "root": str(self.root), "torch_index": torch_index}

    def recorded(self) -> dict[str, str] | None:
        """The stamp; empty while an environment is being made, None where it is not ours."""
        try:
            record = json.loads(self.stamp.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def version(self) -> str:
        """The version of the environment's Python, empty when it does not start."""
        try:
            command = [str(self.python), "-c", "import platform as p; print(p.python_version())"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    def state(self, torch_index: str | None) -> str:
        """`ready`, `outdated` (install on top), `broken` (make it again) or `absent`.

        Without an index of its own (None) a run accepts the environment wherever torch came from;
        with another one it is broken, since pip would find torch installed and leave it.
        """
        if not os.path.lexists(self.folder):
            return "absent"
        record, version = self.recorded(), self.version()
        if record is None:  # made by hand or by an editor: not ours to remove if it works
            usable = tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) >= OLDEST
            return "outdated" if usable else "broken"
        if not version or record.get("python") != version or record.get("root") != str(self.root):
            return "broken"
        index = record.get("torch_index", "")
        if torch_index not in (None, index):
            return "broken"
        same = record == {**self.wanted(index), "python": version}
        return "ready" if same else "outdated"

    def ensure(self, torch_index: str | None) -> None:
        """Make the environment, bring it up to date, or do nothing. Raises Failure."""
        state = self.state(torch_index)
        if state == "ready":
            return
        check_python()
        index = torch_index or (self.recorded() or {}).get("torch_index", "")
        if state == "broken":
            print(tr(f"重新创建 {self.folder}", f"making {self.folder} again"))
            remove(self.folder)
        if state != "outdated":
            self.make()
        self.write_stamp({})
        self.install(index)
        self.write_stamp({**self.wanted(index), "python": self.version()})

    def make(self) -> None:
        """Create an empty virtual environment from the Python that runs this."""
        free = shutil.disk_usage(self.root).free
        if free < ENVIRONMENT_BYTES:
            raise Failure(
                tr(
                    f"{self.root} 所在磁盘只剩 {free / GIB:.1f} GiB，环境需要 "
                    f"{ENVIRONMENT_BYTES / GIB:.0f} GiB：先腾出空间",
                    f"only {free / GIB:.1f} GiB free at {self.root}, the environment needs "
                    f"{ENVIRONMENT_BYTES / GIB:.0f} GiB: free some space first",
                )
            )
        self.folder.mkdir()
        self.write_stamp({})
        base = getattr(sys, "_base_executable", None) or sys.executable
        command = [base, "-m", "venv", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(
                tr("无法创建 .venv：", "cannot make .venv: ")
                + reason(done.stdout + done.stderr, self.folder)
            )

    def install(self, torch_index: str) -> None:
        """Let the environment's own pip install the project, its tools and exact versions."""
        pip = [str(self.python), "-m", "pip", "install", "--no-compile", "-c", "constraints.txt"]
        if torch_index:
            # Only torch comes from that index, and only itself: the rest from pip's usual one.
            self.pip([*pip, "--no-deps", "--index-url", torch_index, "torch"])
        # As a path entry: setuptools' import hook would answer for every `minisgl.…`, also where
        # `minisgl` is a step's, which may not have that module.
        self.pip([*pip, "--config-settings", "editable_mode=compat", "-e", ".[dev]"])
        # pip would compile one file after the other. Some, made for other versions, never compile.
        compileall = [str(self.python), "-m", "compileall", "-qq", "-j", "0"]
        run([*compileall, str(self.folder / "lib")], self.root)

    def pip(self, command: list[str]) -> None:
        with PipLog(self.folder / "pip.log") as log:
            status, tail = run(command, self.root, take=log.take)
        if status:
            why = f"{reason(tail, self.folder)}  ({log.path})"
            raise Failure(tr("pip 安装失败：", "pip failed: ") + why)

    def write_stamp(self, record: dict[str, str]) -> None:
        self.stamp.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


class PipLog:
    """What pip prints: all of it in a file, on a terminal one line that says what it is doing."""

    # pip's own words, and what a reader of Chinese sees instead.
    DOINGS: ClassVar = {
        "Collecting": "查找 {}",
        "Downloading": "下载 {}",
        "Building": "构建…",
        "Preparing": "准备…",
        "Installing": "安装…",
    }

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb")
        self._rest = b""
        self._packages = 0
        self._warned = not may_fetch_cuda()

    def __enter__(self) -> PipLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        text = tr(f"看过 {self._packages} 个包", f"{self._packages} packages looked at")
        self._say(f"{text}  ({self.path})", "\n")

    def take(self, piece: bytes) -> None:
        """Keep a piece of the output and show its last line."""
        self._file.write(piece)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            doing, _, what = line.decode("utf-8", "replace").strip().partition(" ")
            self._packages += doing == "Collecting"
            if doing == "Downloading" and what.startswith("nvidia") and not self._warned:
                self._warned = True
                zh = "这台机器没有 NVIDIA GPU，pip 却在下载 nvidia-… 包（共几 GB）："
                en = "No NVIDIA GPU here, and pip fetches packages named nvidia-… (several GB): "
                zh += "可按 Ctrl-C 停下，改用 --torch-index（见 README）"
                en += "stop with Ctrl-C and use --torch-index (see README)"
                self._say(tr(zh, en), "\n")
            if doing in self.DOINGS and sys.stdout.isatty():
                text = tr(self.DOINGS[doing].format(what), f"{doing} {what}")
                self._say(text[: shutil.get_terminal_size().columns - 8])

    def _say(self, text: str, end: str = "") -> None:
        clear = "\r\x1b[K" if sys.stdout.isatty() else ""
        print(f"{clear}   pip: {text}", end=end, flush=True)


def check_python() -> None:
    """Raise Failure unless this Python can make an environment."""
    if sys.platform == "win32":
        raise Failure(
            tr(
                "Windows 上请在 WSL2 里运行（见 README）",
                "on Windows, run this inside WSL2 (see README)",
            )
        )
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        raise Failure(
            tr(
                f"{sys.executable} 缺少 venv/ensurepip：Debian、Ubuntu 上 apt install {package}",
                f"{sys.executable} lacks venv/ensurepip: on Debian or Ubuntu, "
                f"apt install {package}",
            )
        )


def use_new_python() -> None:
    """Go on with a Python that is new enough, where this one is not. Raises Failure."""
    if sys.version_info >= OLDEST:
        return
    for minor in range(OLDEST[1] + 9, OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found:
            sys.stdout.flush()
            os.execv(found, [found, *sys.argv])
    need = ".".join(map(str, OLDEST))
    raise Failure(
        tr(
            f"需要 Python {need} 或更新版本，这是 {platform.python_version()}"
            f"（{sys.executable}）：安装后重新运行",
            f"Python {need} or newer is needed, this is {platform.python_version()} "
            f"({sys.executable}): install one and run again",
        )
    )


def has_nvidia() -> bool:
    return shutil.which("nvidia-smi") is not None or Path("/dev/nvidia0").exists()


def may_fetch_cuda() -> bool:
    """Whether the usual index would hand this machine a CUDA build that it cannot use."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and not has_nvidia()


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Hold the checkout's lock, so that two runs never make the same environment at once."""
    import fcntl  # not on Windows, where check_python says what to do

    handle = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(tr("另一个运行正在准备环境，等待中…", "another run is setting up: waiting"))
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)
