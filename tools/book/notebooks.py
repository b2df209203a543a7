"""Each chapter's example as a notebook: the same source, cut into cells.

Converting twice gives the same bytes: a cell's id is a hash of what it holds, and nothing of the
machine or of the converter's version is stored. Outputs are not stored either; `run` makes them and
compares what is printed with the record.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.book.errors import BookError
from tools.book.sources import Sources
from tools.steplib import Step
from tools.steplib.record import difference, expected_file
from tools.steplib.source import Scope, docstring_of, first_line, lines_of, parse

FOLDER = "notebooks"
LIMIT_SECONDS = 900
SETUP = """\
# The tree of chapter {number}. MINISGL_LANG=en or zh chooses the language of what is printed.
import os
import sys
from pathlib import Path

root = next(one for one in (Path.cwd(), *Path.cwd().parents) if (one / "steps").is_dir())
sys.path[:0] = [str(root), str(root / "examples")]

from tools.steplib import build, load_steps

os.environ["MINISGL_TREE"] = str(build(load_steps(root), {number}))
sys.argv = ["{main}"]"""


def path_of(step: Step) -> str:
    """Where the notebook of a step lies."""
    return f"{FOLDER}/{Path(step.main).stem}.ipynb"


def convert(sources: Sources, step: Step) -> str:
    """Return the notebook of a step's example as text."""
    import jupytext
    import nbformat

    text = "\n\n".join(f"# %%{kind}\n{body}" for kind, body in _cells(sources, step))
    notebook = jupytext.reads(text, fmt="py:percent")
    taken: dict[str, int] = {}
    for cell in notebook.cells:
        found = hashlib.sha256(f"{cell.cell_type}\0{cell.source}".encode()).hexdigest()[:8]
        count = taken[found] = taken.get(found, 0) + 1
        cell.id = found if count == 1 else f"{found}-{count}"
        cell.metadata.clear()
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return str(nbformat.writes(notebook)) + "\n"


def _cells(sources: Sources, step: Step) -> Iterator[tuple[str, str]]:
    """(kind, text) of every cell: title, setup, imports, then what blank lines set apart."""
    source = sources.read(step.main)
    titles = [f"# {step.number:02} {step.title[language]}" for language in ("zh", "en")]
    note = (ast.get_docstring(parse(source, step.main)) or "").split("\n")
    pages = [f"[{language}](../docs/{language}/{step.page}.md)" for language in ("zh", "en")]
    prose = [titles[0], "", titles[1].replace("# ", "## "), "", *note, "", " · ".join(pages)]
    yield " [markdown]", "\n".join(f"# {line}".rstrip() for line in prose)
    yield "", SETUP.format(number=step.number, main=Path(step.main).name)
    yield from (("", body) for body in _code_cells(source, step.main))


def _code_cells(source: str, path: str) -> Iterator[str]:
    lines = lines_of(source)
    imports: list[str] = []
    cell: list[str] = []
    module = parse(source, path)
    body = [node for node in module.body if node is not docstring_of(module)]
    begins = [_begin(lines, node) for node in body]
    for node, begin, after in zip(body, begins, [*begins[1:], len(lines) + 1], strict=False):
        text = "\n".join(lines[begin - 1 : after - 1]).rstrip("\n")
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports += [""] if imports and not lines[begin - 2] else []
            imports.append(text)
            continue
        if imports:
            yield "\n".join(imports)
            imports = []
        if cell and not lines[begin - 2].strip():
            yield "\n".join(cell)
            cell = []
        cell.append(text)
    yield "\n".join(cell)


def _begin(lines: list[str], node: ast.stmt) -> int:
    """The line on which a statement begins, comments above it included."""
    begin = first_line(node) if isinstance(node, Scope) else node.lineno
    while begin > 1 and lines[begin - 2].startswith("#"):
        begin -= 1
    return begin


def stale(sources: Sources) -> list[str]:
    """Return the notebooks that are not what `convert` makes, and those of no step."""
    wanted = {path_of(step): step for step in sources.book}
    found = [
        path
        for path, step in wanted.items()
        if not (sources.root / path).is_file() or sources.read(path) != convert(sources, step)
    ]
    there = {f"{FOLDER}/{one.name}" for one in (sources.root / FOLDER).glob("*.ipynb")}
    return found + sorted(there - set(wanted))


def write(sources: Sources) -> list[str]:
    """Bring the notebooks up to date; return those that changed."""
    changed = stale(sources)
    wanted = {path_of(step): step for step in sources.book}
    for path in changed:
        place = sources.root / path
        if path in wanted:
            place.parent.mkdir(exist_ok=True)
            place.write_text(convert(sources, wanted[path]), "utf-8")
        else:
            place.unlink()
    return changed


def run(sources: Sources, numbers: list[int]) -> Iterator[str]:
    """Execute notebooks, and compare what they print with the records; yields a line for each.

    BookError for the first cell that fails or prints something else.
    """
    language = os.environ.setdefault("MINISGL_LANG", "zh")
    for step in sources.book:
        if not numbers or step.number in numbers:
            printed = _execute(sources, step)
            changed = difference(expected_file(step, language).read_text("utf-8"), printed)
            if changed:
                raise BookError(
                    f"{path_of(step)} 的输出和记录不同\n{changed}",
                    f"{path_of(step)} prints something else than the record\n{changed}",
                )
            yield f"{path_of(step)} ✓"


def _execute(sources: Sources, step: Step) -> str:
    import nbclient
    import nbformat
    from jupyter_client import AsyncKernelManager

    notebook: Any = nbformat.reads(convert(sources, step), as_version=4)
    with tempfile.TemporaryDirectory(prefix="book-") as sockets:
        # Over files: no port of this machine is open to others while a notebook runs.
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{sockets}/kernel")
        client = nbclient.NotebookClient(
            notebook,
            km=kernel,
            timeout=LIMIT_SECONDS,
            resources={"metadata": {"path": str(sources.root / FOLDER)}},
        )
        try:
            client.execute(cleanup_kc=True)  # the kernel is ours, so it is ours to end
        except (nbclient.exceptions.CellExecutionError, RuntimeError, TimeoutError) as error:
            # Tracebacks of a kernel are coloured for a terminal.
            last = re.sub(r"\x1b\[[\d;]*m", "", str(error)).strip().splitlines()[-1]
            raise BookError(f"{path_of(step)}：{last}", f"{path_of(step)}: {last}") from None
    return "".join(
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "stream" and output.name == "stdout"
    )
