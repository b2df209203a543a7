"""Level 3's command line: a process tree with its own everything, and almost nothing to see."""

import functools
import os
import shutil
import subprocess
from pathlib import PurePosixPath

from practice.judgelib.sandbox import paths
from practice.judgelib.text import Text

# Where the box's own code lies inside.
INSIDE_ROOT = "/judge"
NOBODY = 65534


def program() -> str | None:
    """Return the path of bubblewrap, or None where it is not installed."""
    return shutil.which("bwrap")


def command(info: int | None = None) -> list[str]:
    """Return the arguments that start a program inside; the program's own follow them.

    `info`: a file descriptor to which bubblewrap writes the id of the box's first process.
    """
    bwrap = program()
    assert bwrap is not None, "bubblewrap is not installed"
    arguments = [bwrap, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--new-session", "--hostname", "box"]
    if os.geteuid() == 0:
        # The nursery turns into a real other user; for that it needs just these two.
        arguments += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        arguments += ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
        if "--disable-userns" in _usage(bwrap):
            arguments.append("--disable-userns")
    arguments += _binds()
    arguments += ["--remount-ro", "/", "--chdir", "/"]
    if info is not None:
        arguments += ["--info-fd", str(info)]
    return [*arguments, "--"]


def try_out() -> Text | None:
    """Start and end a box; return None when that works, else one line saying why not."""
    if program() is None:
        return Text("没有安装 bubblewrap（bwrap）", "bubblewrap (bwrap) is not installed")
    test = [*command(), paths.interpreter(), "-I", "-S", "-c", "pass"]
    try:
        done = subprocess.run(test, capture_output=True, text=True, timeout=20, env={}, cwd="/")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Text(f"bubblewrap 运行不了：{error}", f"bubblewrap cannot run: {error}")
    if done.returncode == 0:
        return None
    *_, said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return Text(
        f"bubblewrap 在这里建不了沙箱：{said}", f"bubblewrap cannot make a box here: {said}"
    )


def _binds() -> list[str]:
    places = [(path, path) for path in paths.readable()]
    places += [(str(paths.ROOT / name), f"{INSIDE_ROOT}/{name}") for name in paths.INSIDE]
    devices = paths.DEVICES_READ + paths.DEVICES_WRITE
    arguments = _folders([*(target for _, target in places), *devices])
    for source, target in places:
        arguments += ["--ro-bind", source, target]
    for path in devices:
        arguments += ["--dev-bind", path, path]
    for path in paths.hidden():
        cover = ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", os.devnull, path]
        arguments += cover
    return arguments


def _folders(targets: list[str]) -> list[str]:
    """Make each parent by name: those that bubblewrap makes are closed to all other users."""
    parents = {str(up) for target in targets for up in PurePosixPath(target).parents}
    inside = [folder for folder in sorted(parents - {"/"}) if not _covered(folder, targets)]
    return [part for folder in inside for part in ("--perms", "0755", "--dir", folder)]


def _covered(folder: str, targets: list[str]) -> bool:
    return any(PurePosixPath(folder).is_relative_to(target) for target in targets)


@functools.cache
def _usage(bwrap: str) -> str:
    return subprocess.run([bwrap, "--help"], capture_output=True, text=True, timeout=20).stdout
