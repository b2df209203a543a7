"""What a problem's folder must hold beside problem.toml: one line for every fault."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from practice.judgelib import engine
from practice.judgelib.cases import GROUPS
from practice.judgelib.catalogue import Problem
from practice.judgelib.samples import sample_block, with_samples
from practice.judgelib.text import JudgeError

# In this order; the last may be left out.
HEADINGS = (
    ("要写什么", "What to build"),
    ("约定", "Contract"),
    ("样例", "Sample"),
    ("为什么重要", "Why it matters"),
    ("限制", "Limits"),
)
MUTANTS = 5
CAUGHT = re.compile(r"# caught by: (\w+)")


def faults(problem: Problem) -> list[str]:
    """Everything that is wrong with the files of a folder, but for what only judging shows."""
    found: list[str] = []
    for rule in (_files, _statements, _variants, _samples):
        try:
            found += rule(problem)
        except JudgeError as error:
            found.append(str(error))
        except Exception as error:  # the problem's own code: cases.py, oracle.py
            found.append(f"{problem.id}: {type(error).__name__}: {error}")
    return found


def caught_by(text: str) -> str:
    """The group that a mutant says it is caught by; empty when it says none."""
    lines = text.split("\n")
    matched = CAUGHT.fullmatch(lines[1].strip()) if len(lines) > 1 else None
    return matched[1] if matched and matched[1] in GROUPS else ""


def misconception(text: str) -> str:
    """The first line of a mutant without its mark; empty when it is no comment."""
    first = text.partition("\n")[0]
    return first[1:].strip() if first.startswith("#") else ""


def _files(problem: Problem) -> Iterator[str]:
    wanted = ["cases.py", "oracle.py"]
    wanted += ["driver.py"] if problem.kind in ("ops", "engine", "bug") else []
    wanted += [] if problem.step else ["starter.py", "solution.py"]
    for name in wanted:
        if not (problem.folder / name).is_file():
            yield f"{problem.id}: there is no {name}"
    for name in ("starter.py", "solution.py") if problem.step else ():
        if (problem.folder / name).exists():
            yield f"{problem.id}: {name} must not be there: it comes from the step"
    for path in sorted(problem.folder.rglob("*.py")):
        try:
            ast.parse(path.read_bytes())
        except (SyntaxError, ValueError) as error:
            yield f"{problem.id}/{path.relative_to(problem.folder)}: {error}"
    yield from _oracle_is_independent(problem)


def _oracle_is_independent(problem: Problem) -> Iterator[str]:
    if not (problem.folder / "oracle.py").is_file():
        return
    text = problem.read("oracle.py")
    if re.search(r"^\s*(from|import)\s+(minisgl|solution|driver)\b", text, re.MULTILINE):
        yield f"{problem.id}/oracle.py: imports what it is to check"


def _statements(problem: Problem) -> Iterator[str]:
    for index, (language, text) in enumerate(zip(("zh", "en"), problem.statement(), strict=True)):
        name = f"{problem.id}/statement.{language}.md"
        title = f"# {problem.title[index]}"
        if text.partition("\n")[0] != title:
            yield f"{name}: the first line must be {title!r}"
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        wanted = [pair[index] for pair in HEADINGS]
        if headings not in (wanted, wanted[:-1]):
            yield f"{name}: the headings must be {' · '.join(wanted)} (the last if needed)"
    levels = [re.findall(r"^#+ ", text, re.MULTILINE) for text in problem.statement()]
    if levels[0] != levels[1]:
        yield f"{problem.id}: the statements have different headings"


def _variants(problem: Problem) -> Iterator[str]:
    if not problem.files("alt"):
        yield f"{problem.id}: there is no different correct solution in alt/"
    mutants = problem.files("mutants")
    if len(mutants) < MUTANTS:
        yield f"{problem.id}: {len(mutants)} mutants, at least {MUTANTS} are needed"
    if problem.kind == "bug" and engine.PLANTED not in mutants:
        yield f"{problem.id}: there is no mutants/{engine.PLANTED}"
    for name, text in mutants.items():
        if not misconception(text):
            yield f"{problem.id}/mutants/{name}: line 1 must be a comment with the misconception"
        if not caught_by(text):
            yield f"{problem.id}/mutants/{name}: line 2 must be `# caught by: GROUP`"
    if engine.has_step(problem) and problem.step:
        for text in [*problem.files("alt").values(), *mutants.values()]:
            if engine.replaced(problem, text) == engine.reference(problem):
                yield f"{problem.id}: a replacement changes nothing: {text.partition(chr(10))[0]}"


def _samples(problem: Problem) -> Iterator[str]:
    if not engine.has_step(problem):
        return
    for language, text, block in zip(
        ("zh", "en"), problem.statement(), sample_block(problem), strict=True
    ):
        name = f"{problem.id}/statement.{language}.md"
        if "<!-- samples -->" not in text or "<!-- /samples -->" not in text:
            yield f"{name}: there is no <!-- samples --> … <!-- /samples -->"
        elif with_samples(text, block) != text:
            yield f"{name}: the samples are out of date: judge.py audit {problem.id} --write"
