"""What this machine has, and what to do about what it lacks."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.devlib.environment import GIB, Environment, check_python, has_nvidia
from tools.devlib.model import MODEL, model_home
from tools.devlib.process import Failure, reason
from tools.environment import usable_cpus
from tools.lang import tr

# What the doctor asks the environment's own Python.
PROBE = """
import importlib.metadata as m, json
names = {d.metadata["Name"] or "" for d in m.distributions()}
import torch
print(json.dumps({
    "torch": torch.__version__, "threads": torch.get_num_threads(),
    "cuda": torch.cuda.is_available(), "nvidia": sum(n.startswith("nvidia-") for n in names),
}))
"""


class Finding(NamedTuple):
    """One line of the doctor's: what was looked at, what was found, and what to do (or empty)."""

    what: str
    found: str
    todo: str = ""


def doctor(environment: Environment) -> int:
    """Print what this machine has and what to do about what it lacks; 1 if something must be."""
    findings = [*look_at_python(environment), *look_at_disk(environment)]
    findings += [look_at_model(environment), look_at_gpu(), look_at_sandbox()]
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        mark = "!" if finding.todo else "✓"
        print(f"{mark} {finding.what:<{width}}  {finding.found}")
        if finding.todo:
            print(f"  {'':<{width}}  → {finding.todo}")
    return 1 if any(finding.todo for finding in findings) else 0


def look_at_python(environment: Environment) -> Iterator[Finding]:
    """Python, the environment, and torch with its threads."""
    here = f"{platform.python_version()} ({sys.executable}), {platform.platform()}"
    todo = ""
    try:
        check_python()
    except Failure as error:
        todo = str(error)
    yield Finding("python", here, todo)

    state = environment.state(None)
    command = "python3 tools/dev.py test"
    todo = "" if state == "ready" else tr(f"运行 {command}", f"run {command}")
    words = {
        "ready": tr("完整", "ready"),
        "outdated": tr("需要更新", "outdated"),
        "broken": tr("不完整", "incomplete"),
        "absent": tr("没有", "absent"),
    }
    yield Finding("environment", f"{environment.folder}: {words[state]}", todo)
    if state not in ("ready", "outdated"):
        return
    done = subprocess.run(
        [str(environment.python), "-c", PROBE], capture_output=True, text=True, check=False
    )
    if done.returncode:
        yield Finding("torch", reason(done.stderr, environment.folder), f"run {command}")
        return
    probe = json.loads(done.stdout.splitlines()[-1])
    todo = ""
    if probe["nvidia"] and not has_nvidia():
        todo = tr(
            f"装了 {probe['nvidia']} 个 nvidia-… 包，但这台机器没有 NVIDIA GPU：能用，只是占几 GB。"
            "换成 CPU 版：python3 tools/dev.py clean，再加 --torch-index（见 README）",
            f"{probe['nvidia']} nvidia-… packages without an NVIDIA GPU: it works, but takes "
            "several GB. For the CPU build: python3 tools/dev.py clean, then use --torch-index "
            "(see README)",
        )
    yield Finding("torch", f"{probe['torch']}, CUDA: {probe['cuda']}", todo)
    cores = usable_cpus()
    limit = os.environ.get("OMP_NUM_THREADS")
    note = f", OMP_NUM_THREADS={limit}" if limit else ""
    todo = ""
    if probe["threads"] > cores:
        todo = tr(
            f"线程多于可用的核，会很慢：设 OMP_NUM_THREADS={cores}",
            f"more threads than cores is slow: set OMP_NUM_THREADS={cores}",
        )
    yield Finding("threads", f"{probe['threads']} ({cores} CPUs usable{note})", todo)


def look_at_disk(environment: Environment) -> Iterator[Finding]:
    """Free space where the environment and the model lie, and whether they can be written."""
    for what, folder in (("disk", environment.root), ("model disk", model_home())):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        todo = ""
        if not os.access(existing, os.W_OK):
            todo = tr(f"{existing} 不可写", f"{existing} cannot be written to")
            if what == "model disk":
                todo += tr("：用 MINISGL_HOME 换一个目录", ": name another folder in MINISGL_HOME")
        elif free < GIB:
            todo = tr("腾出空间", "free some space")
        yield Finding(what, f"{free / GIB:.1f} GiB free at {existing}", todo)


def look_at_model(environment: Environment) -> Finding:
    """Where the embedded model lies and, with an environment to ask, whether it is whole."""
    folder = model_home() / MODEL
    command = "python3 tools/dev.py demo"
    todo = tr(f"运行 {command}", f"run {command}")
    if not folder.exists():
        return Finding("model", tr(f"{folder}：没有", f"{folder}: absent"), todo)
    if environment.state(None) == "ready":
        verify = [str(environment.python), "tools/fetch_model.py", "--verify"]
        done = subprocess.run(
            verify, cwd=environment.root, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return Finding("model", reason(done.stderr, folder), todo)
    return Finding("model", str(folder))


def look_at_gpu() -> Finding:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Finding("gpu", tr("没有 NVIDIA GPU（不是必需的）", "no NVIDIA GPU (none is needed)"))
    query = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    if done.returncode:
        problem = reason(done.stdout + done.stderr, Path(tool))
        return Finding("gpu", problem, tr("检查驱动", "check the driver"))
    return Finding("gpu", "; ".join(done.stdout.split("\n")).strip("; "))


def look_at_sandbox() -> Finding:
    """bubblewrap, in which the judge runs submissions where it can; optional."""
    tool = shutil.which("bwrap")
    if tool:
        return Finding("sandbox", tool)
    advice = tr("没有 bwrap（最严的沙箱要用它", "no bwrap (the strictest sandbox needs it")
    how = "apt install bubblewrap" if sys.platform == "linux" else tr("仅 Linux", "Linux only")
    return Finding("sandbox", f"{advice}: {how})")
