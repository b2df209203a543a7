"""Attacks that prove a level instead of naming it: `judge.py doctor` and the tests run them.

Each is a submission that tries one thing and answers True where it got it. Killed, refused or
out of time: it did not.
"""

import os
import socket
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from practice.judgelib.box import Box, JobResult, Limits
from practice.judgelib.sandbox import paths
from practice.judgelib.text import Text

LIMITS = Limits(wall_s=3.0, cpu_s=2, memory_mb=64, output_bytes=4096, case_s=1.5)
HEAD = "import ctypes, os, resource, socket, subprocess, threading\n\n\n"


@dataclass(frozen=True)
class Probe:
    """One attack: the body of a function of `aims`, a dict of what there is to attack."""

    name: str
    title: Text
    body: str

    @property
    def source(self) -> str:
        """The submission, whose entry is called `attack`."""
        return f"{HEAD}def attack(aims):\n{textwrap.indent(self.body, '    ')}"


@dataclass(frozen=True)
class Finding:
    """What came of a probe: `open` where the attack got through, and how its job ended."""

    probe: Probe
    open: bool
    said: str


PROBES = [
    Probe(
        "file",
        Text("读外面的文件", "read a file outside"),
        "return aims['word'] in open(aims['file']).read()",
    ),
    Probe(
        "folder",
        Text("列出仓库的文件夹", "list the repository"),
        "return len(os.listdir(aims['repository'])) > 0",
    ),
    Probe(
        "write",
        Text("写文件", "write a file"),
        "return os.open(aims['file'] + '.new', os.O_CREAT | os.O_WRONLY) > 0",
    ),
    Probe(
        "environment",
        Text("读判题进程的环境变量", "read the judge's environment"),
        "return len(open(f'/proc/{aims[\"pid\"]}/environ').read()) > 0",
    ),
    Probe(
        "memory",
        Text("读父进程的内存", "read the parent process's memory"),
        """\
place = f"/proc/{os.getppid()}"
start = int(open(f"{place}/maps").read().split("-")[0], 16)
with open(f"{place}/mem", "rb") as memory:
    memory.seek(start)
    return len(memory.read(16)) == 16
""",
    ),
    Probe(
        "network",
        Text("连接本机的端口", "connect to a local port"),
        "return socket.create_connection(('127.0.0.1', aims['port']), 1) is not None",
    ),
    Probe(
        "signal",
        Text("给判题进程发信号", "signal the judge"),
        "return os.kill(aims['pid'], 0) is None",
    ),
    Probe(
        "parent",
        Text("给父进程发信号", "signal the parent process"),
        "return os.kill(os.getppid(), 0) is None",
    ),
    Probe(
        "process",
        Text("创建进程", "start a process"),
        """\
child = os.fork()
if child == 0:
    os._exit(0)
return os.waitpid(child, 0)[0] == child
""",
    ),
    Probe(
        "thread",
        Text("创建线程", "start a thread"),
        "return threading.Thread(target=int).start() is None",
    ),
    Probe(
        "program",
        Text("运行别的程序", "run a program"),
        "return subprocess.run(['/bin/sh', '-c', 'true']).returncode == 0",
    ),
    Probe(
        "namespace",
        Text("新建用户命名空间", "make a user namespace"),
        "return ctypes.CDLL(None).unshare(0x10000000) == 0",
    ),
    Probe(
        "memfile",
        Text("在内存里建文件", "make a file in memory"),
        "return os.memfd_create('x') > 0",
    ),
    Probe(
        "limits",
        Text("改变判题进程的限制", "change the judge's limits"),
        "return resource.prlimit(aims['pid'], resource.RLIMIT_CORE) is not None",
    ),
]


def run_probes(box: Box) -> list[Finding]:
    """Run every probe in the box and return what each came to, in order.

    Something to attack is set up for them: a file, a listening port on loopback, this process.
    """
    with _aims() as aims:
        return [_finding(probe, box.run(_job(probe), [_case(aims)], LIMITS)) for probe in PROBES]


@contextmanager
def _aims() -> Iterator[dict[str, Any]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        os.chmod(folder, 0o755)
        file = os.path.join(folder, "secret")
        with open(file, "w") as out:
            out.write("sesame")
        yield {
            "file": file,
            "word": "sesame",
            "port": server.getsockname()[1],
            "pid": os.getpid(),
            "repository": str(paths.ROOT),
        }


def _job(probe: Probe) -> dict[str, Any]:
    files = {"submission.py": probe.source}
    return {"files": files, "entry": ["submission", "attack"], "torch": False}


def _case(aims: dict[str, Any]) -> dict[str, Any]:
    return {"args": [aims], "kwargs": {}}


def _finding(probe: Probe, result: JobResult) -> Finding:
    answer = result.answers[0] if result.answers else {}
    if "error" in answer:
        said = f"{answer['error']['type']}: {answer['error']['message']}"
    else:
        said = result.ended if result.ended != "done" else str(answer.get("ok"))
    return Finding(probe, answer.get("ok") is True, said)
