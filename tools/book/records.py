"""Whether a chapter's recorded output still belongs to the sources that printed it.

`steps.py check` proves it by running every main, which takes minutes; a page must know in no time.
So docs/records.json holds a hash of what each main ran on when its output was last compared, and
`python3 -m tools.book record` compares again, by running, those whose hash has changed. Comments
and docstrings do not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from tools.book.bench import script_hash
from tools.book.errors import BookError
from tools.book.sources import Sources
from tools.book.words import LANGUAGES
from tools.steplib import Step, StepError, assemble, build, tree
from tools.steplib.build import HELPER
from tools.steplib.closure import closure
from tools.steplib.record import difference, expected_file, failure
from tools.steplib.run import python, run_main

PATH = "docs/records.json"


def check_record(sources: Sources, step: Step) -> None:
    """BookError when a chapter's output is missing or was printed by other sources."""
    recorder = f"python3 tools/steps.py record {step.number}"
    again = f"python3 -m tools.book record {step.number}"
    for language in LANGUAGES:
        if not expected_file(step, language).is_file():
            raise BookError(
                f"{step.label} 没有记录下来的输出：运行 {recorder}",
                f"{step.label} has no recorded output: run {recorder}",
            )
    if _stored(sources.root).get(step.label) != source_hash(sources, step):
        raise BookError(
            f"{step.label} 的输出记录于源码改动之前：运行 {again}",
            f"the output of {step.label} was recorded before its sources changed: run {again}",
        )


def record(sources: Sources, numbers: list[int], forced: bool) -> Iterator[str]:
    """Run the mains whose sources have changed, and note those that print what is recorded.

    Yields one line per chapter; BookError when one prints something else.
    """
    for step in sources.book:
        if numbers and step.number not in numbers:
            continue
        found = source_hash(sources, step)
        if not forced and _stored(sources.root).get(step.label) == found:
            yield f"{step.label} ✓"
            continue
        folder = build(sources.book, step.number)
        for language in LANGUAGES:
            _compare(sources, step, folder, language)
        stored = _stored(sources.root) | {step.label: found}
        text = json.dumps(dict(sorted(stored.items())), indent=1)
        (sources.root / PATH).write_text(text + "\n", "utf-8")
        yield f"{step.label} ✓ {found}"


def _compare(sources: Sources, step: Step, folder: Path, language: str) -> None:
    ended = run_main(python(sources.root), folder, step.main, language)
    if ended.status != 0:
        raise StepError(f"{step.main}: {failure(ended)}")
    changed = difference(expected_file(step, language).read_text("utf-8"), ended.output)
    if changed:
        again = f"python3 tools/steps.py record {step.number}"
        raise BookError(
            f"{step.main}（{language}）的输出变了：运行 {again}\n{changed}",
            f"{step.main} ({language}) prints something else: run {again}\n{changed}",
        )


def _stored(root: Path) -> dict[str, str]:
    try:
        found = json.loads((root / PATH).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def source_hash(sources: Sources, step: Step) -> str:
    """Return a hash of what the main of a step runs on, whatever its comments and docstrings."""
    if step.number not in sources.hashes:
        sources.hashes[step.number] = _source_hash(sources, step)
    return sources.hashes[step.number]


def _source_hash(sources: Sources, step: Step) -> str:
    files = assemble(sources.book, step.number)
    versions = tree(sources.book, step.number)
    total = hashlib.sha256()
    # What finds the tree and chooses the language is the same for all, and prints nothing.
    for path in sorted(closure(files, [step.main]) - {HELPER}):
        place = versions[path].location if path in versions else sources.root / path
        content = (
            script_hash(place)
            if path.endswith(".py")
            else hashlib.sha256(place.read_bytes()).hexdigest()
        )
        total.update(f"{path}\0{content}\0".encode())
    return total.hexdigest()[:16]
