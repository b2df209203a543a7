"""Blocks of Python that a page marks `run`: executed on the tree of the page's chapter."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.book.errors import BookError, Fault
from tools.book.pages import Fence, Page, scan
from tools.book.sources import Sources
from tools.lang import tr
from tools.steplib import build
from tools.steplib.cache import Cache
from tools.steplib.run import environment, python

PYTHON = ("python", "py", "python3", "pycon")
RUN = "run"
SKETCH = "sketch"
LIMIT_SECONDS = 300
# Imports take longer than any block does, so they are done once per chapter; each block then runs
# in a copy of the process, and what it leaves behind is gone with it.
DRIVER = """
import ast, contextlib, importlib, io, json, os, sys, traceback

def run(block):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block, "<block>", "exec"), {"__name__": "__main__"})
    except BaseException:
        return traceback.format_exc().strip().splitlines()[-1]
    return ""

def asked(block):
    with contextlib.suppress(SyntaxError):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module

blocks = json.load(sys.stdin)
for name in dict.fromkeys(name for block in blocks for name in asked(block)):
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
said = []
for block in blocks:
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        os.close(receive)
        os.write(send, run(block).encode()[:4000])
        os._exit(0)
    os.close(send)
    with open(receive, encoding="utf-8", errors="replace") as answer:
        line = answer.read()
    status = os.waitpid(child, 0)[1]
    said.append(line or (f"exit status {os.waitstatus_to_exitcode(status)}" if status else ""))
json.dump(said, sys.stdout)
"""


def failing_blocks(sources: Sources, pages: list[Page]) -> Iterator[Fault]:
    """Run the blocks of these pages, each in a namespace of its own; a fault for each that fails.

    A block that has passed on the same tree is not run again.
    """
    found: dict[int, list[tuple[Page, Fence]]] = {}
    for page in pages:
        for one in scan(page.text):
            if isinstance(one, Fence) and one.info.split()[1:2] == [RUN]:
                step = sources.step_of(page.name) or sources.book.last
                found.setdefault(step.number, []).append((page, one))
    for number, blocks in found.items():
        said = _run(sources, number, [_body(fence) for _, fence in blocks])
        for page, fence in blocks:
            why = said[_body(fence)]
            if why:
                text = tr(f"这段代码跑不通：{why}", f"this block fails: {why}")
                yield Fault(page.path, fence.number, text)


def _body(fence: Fence) -> str:
    return "\n".join(fence.body) + "\n"


def _run(sources: Sources, number: int, bodies: list[str]) -> dict[str, str]:
    """Return the last line of what each block said where it failed, "" where it did not."""
    try:
        folder, cache = build(sources.book, number), Cache(sources.root)
    except OSError as error:
        raise BookError(
            f".steps: {error.strerror}：要能写入", f".steps: {error.strerror}: make it writable"
        ) from None
    keys = {body: cache.key("page", {}, (), folder.name, body) for body in bodies}
    todo = [body for body, key in keys.items() if not cache.get(key)]
    said = dict.fromkeys(keys, "") | _executed(python(sources.root), folder, todo)
    for body in todo:
        if not said[body]:
            cache.put(keys[body], True)
    return said


def _executed(interpreter: str, folder: Path, bodies: list[str]) -> dict[str, str]:
    if not bodies:
        return {}
    try:
        with TemporaryDirectory() as scratch:  # a block may write files
            tree = shutil.copytree(folder, Path(scratch, "tree"))
            ended = subprocess.run(
                [interpreter, "-c", DRIVER],
                cwd=tree,
                env=environment(tree) | {"OMP_WAIT_POLICY": "PASSIVE"},
                input=json.dumps(bodies),
                capture_output=True,
                text=True,
                timeout=LIMIT_SECONDS,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return dict.fromkeys(bodies, f"> {LIMIT_SECONDS} s")
    try:
        return dict(zip(bodies, json.loads(ended.stdout), strict=True))
    except ValueError:
        lines = (ended.stderr or ended.stdout).strip().splitlines()
        return dict.fromkeys(bodies, lines[-1] if lines else f"exit status {ended.returncode}")
