"""The parts of the sandbox: the filter, the paths, the levels, and what each proves by itself."""

import errno
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from levels_users import need

from practice.judgelib.box import Box, Limits, SandboxError
from practice.judgelib.probes import PROBES, run_probes
from practice.judgelib.sandbox import bubblewrap, levels, paths, seccomp
from practice.judgelib.sandbox.bpf import ALLOW, KILL, refuse
from practice.judgelib.sandbox.syscalls import AUDIT_ARCH, number

LIMITS = Limits(wall_s=5.0, cpu_s=3, memory_mb=128, output_bytes=10_000, case_s=3.0)
PID = 4321
EPERM, EAGAIN, ENOSYS = refuse(errno.EPERM), refuse(errno.EAGAIN), refuse(errno.ENOSYS)


def verdict(arch: str, call: int, *arguments: int, audit: int | None = None) -> int:
    """What the filter of `arch` says to a call: its program, run by hand."""
    program = list(struct.iter_unpack("<HBBI", seccomp.build(arch, PID)))
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<iIQ6Q", call, AUDIT_ARCH[arch] if audit is None else audit, 0, *padded)
    value = at = 0
    while True:
        code, if_true, if_false, constant = program[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, constant)
        elif code == 0x06:
            return int(constant)
        else:
            holds = {0x15: value == constant, 0x35: value >= constant, 0x45: value & constant}[code]
            at += if_true if holds else if_false


def of(name: str, arch: str) -> int:
    found = number(name, arch)
    assert found is not None
    return found


@pytest.mark.parametrize("arch", AUDIT_ARCH)
@pytest.mark.parametrize(
    ("name", "arguments", "wanted"),
    [
        ("read", (0,), ALLOW),
        ("openat", (), ALLOW),
        ("mmap", (), ALLOW),
        ("exit_group", (), ALLOW),
        ("clone", (0x11,), KILL),
        ("clone", (0x3D0F00,), EAGAIN),
        ("clone3", (), ENOSYS),
        ("execve", (), KILL),
        ("ptrace", (), KILL),
        ("socket", (2, 1), KILL),
        ("socketpair", (1, 1), ALLOW),
        ("socketpair", (2, 1), KILL),
        ("sendto", (3, 0, 1, 0, 0), ALLOW),
        ("sendto", (3, 0, 1, 0, 0x7FFF0000), KILL),
        ("sendto", (3, 0, 1, 0, 0x7FFF00000000), KILL),
        ("kill", (PID, 9), ALLOW),
        ("kill", (1, 9), KILL),
        ("kill", (0, 9), KILL),
        ("kill", (0xFFFFFFFF, 9), KILL),
        ("kill", (2**64 - PID, 9), KILL),
        ("tgkill", (PID, PID, 6), ALLOW),
        ("tgkill", (1, 1, 6), KILL),
        ("fcntl", (3, 4), ALLOW),
        ("fcntl", (3, 8), EPERM),
        ("ioctl", (1, 0x5401), ALLOW),
        ("ioctl", (1, 0x5412), EPERM),
        ("ioctl", (1, 0x8901), EPERM),
        ("prctl", (15,), ALLOW),
        ("prctl", (1,), EPERM),
        ("prctl", (22,), EPERM),
        ("prlimit64", (0, 7, 0), ALLOW),
        ("prlimit64", (PID, 7, 0), ALLOW),
        ("prlimit64", (0, 7, 0x7FFF0000), EPERM),
        ("prlimit64", (0, 7, 0x700000000), EPERM),
        ("prlimit64", (1, 7, 0), EPERM),
        ("getsockopt", (3, 1, 4), ALLOW),
        ("getsockopt", (3, 1, 17), EPERM),
        ("unshare", (), KILL),
        ("io_uring_setup", (), KILL),
        ("setuid", (), KILL),
    ],
)
def test_the_filter_says(name: str, arguments: tuple[int, ...], wanted: int, arch: str) -> None:
    assert verdict(arch, of(name, arch), *arguments) == wanted


@pytest.mark.parametrize("arch", AUDIT_ARCH)
def test_the_filter_refuses_what_it_does_not_know(arch: str) -> None:
    assert verdict(arch, 9_999) == EPERM
    assert verdict(arch, of("read", arch), audit=0x40000003) == KILL


def test_the_filter_knows_the_other_convention_of_x86() -> None:
    assert verdict("x86_64", 0x40000000 + of("read", "x86_64")) == KILL
    assert verdict("x86_64", of("fork", "x86_64")) == KILL


@pytest.mark.parametrize("level", [3, 2])
def test_every_probe_is_stopped(level: int) -> None:
    need(level)
    with Box(level, torch=False) as box:
        assert {one.probe.name: one.said for one in run_probes(box) if one.open} == {}


def test_every_probe_bites_where_nothing_stops_it() -> None:
    with Box(0, torch=False) as box:
        assert {one.probe.name: one.said for one in run_probes(box) if not one.open} == {}
    assert len(PROBES) >= 12


ALONE = """
import os, socket, sys
found = []
for path in sys.argv[1:3]:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path)
        found.append(path)
    except OSError:
        pass
try:
    open("/usr/lib/new", "w")
    found.append("write")
except OSError:
    pass
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[3])), 1)
    found.append("network")
except OSError:
    pass
try:
    os.kill(int(sys.argv[4]), 0)
    found.append("judge")
except OSError:
    pass
if os.path.exists("/proc/self"):
    found.append("proc")
print(found, os.getpid() < 10, socket.gethostname())
"""


def test_bubblewrap_hides_all_this_by_itself(tmp_path: Path) -> None:
    need(3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = [*bubblewrap.command(), paths.interpreter(), "-I", "-S", "-c", ALONE]
        command += ["/etc/passwd", str(tmp_path), str(port), str(os.getpid())]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, env={}, cwd="/")
    assert done.stdout.strip() == "[] True box", done.stderr


def test_a_path_without_a_hidden_one_names_all_its_neighbours(tmp_path: Path) -> None:
    for name in ("a/torch", "a/minisgl/core", "a/numpy", "b"):
        (tmp_path / name).mkdir(parents=True)
    inside, outside = str(tmp_path / "a"), str(tmp_path / "b")
    gone, left = [f"{inside}/minisgl"], [f"{inside}/numpy", f"{inside}/torch", outside]
    assert paths.without([inside, outside], gone) == (left, [inside])
    assert paths.without([str(tmp_path)], gone) == (left, [str(tmp_path), inside])
    assert paths.without(gone, gone) == ([], [])
    assert paths.without([outside], gone) == ([outside], [])


@pytest.mark.parametrize("level", [3, 2])
def test_an_installed_copy_of_the_reference_is_hidden(
    level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(level)
    for package in ("minisgl", "innocent"):
        folder = tmp_path / "site-packages" / package
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("answer = 42\n")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 != 0o005 and folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o055)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site-packages")])
    source = "def f(name):\n    return __import__(name).answer\n"
    job = {"files": {"submission.py": source}, "entry": ["submission", "f"], "torch": False}
    with Box(level, torch=False) as box:
        cases = [{"args": [name], "kwargs": {}} for name in ("innocent", "minisgl")]
        result = box.run(job, cases, LIMITS)
    assert result.answers[0] == {"ok": 42}
    assert result.answers[1].get("ok") is None


def test_a_level_that_is_not_here_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    levels.obstacle.cache_clear()
    try:
        with pytest.raises(SandboxError) as caught:
            Box(3)
        assert caught.value.text.en.startswith("level 3 is not to be had here: bubblewrap (bwrap)")
        assert "没有安装 bubblewrap" in caught.value.text.zh
        assert levels.best() in (2, 0)
    finally:
        levels.obstacle.cache_clear()


def test_without_landlock_or_seccomp_the_level_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    levels.obstacle.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(levels.landlock, "version", lambda: 0)
            patch.setattr(bubblewrap, "program", lambda: None)
            assert levels.best() == 0
            assert levels.obstacle(2) == levels.NO_LANDLOCK
        levels.obstacle.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(seccomp, "machine", lambda: None)
            assert levels.best() == 0
    finally:
        levels.obstacle.cache_clear()
