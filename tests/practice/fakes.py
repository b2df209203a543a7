"""A small problem in a folder of its own, and a box that is none: for tests of the judge's core."""

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from practice.judgelib.box import Ended, JobResult, Limits
from practice.judgelib.catalogue import Problem, load_problem

TOML = """\
id = "ch01-total"
chapter = 1
kind = "call"
difficulty = "easy"
entry = "total"
signature = "(numbers, start)"
banned = ["sum"]

[title]
zh = "求和"
en = "A sum"

[hints]
zh = ["一", "二", "三"]
en = ["one", "two", "three"]
"""

FILES = {
    "problem.toml": TOML,
    "starter.py": """\
        def total(numbers, start):
            raise NotImplementedError("ch01-total: total")
    """,
    "solution.py": """\
        def total(numbers, start):
            result = start
            for number in numbers:
                result = result + number
            return result
    """,
    "alt/recursive.py": """\
        # One number less each time.
        def total(numbers, start):
            return total(numbers[:-1], start + numbers[-1]) if numbers else start
    """,
    "cases.py": """\
        from practice.judgelib.cases import Case

        def cases(rng):
            def some(n):
                return [rng.randint(1, 99) for _ in range(n)]

            return {
                "sample": [Case("三个数", "three numbers", args=([1, 2, 3], 10))],
                "basic": [Case("基本", "basic", args=(some(n), 5)) for n in (7, 2, 5)],
                "edge": [
                    Case("空", "empty", args=([], 3), plain=True),
                    Case("负数", "negative", args=([-5, 2], 1)),
                ],
                "random": [Case("随机", "random", args=(some(9), rng.randint(1, 9)))],
            }
    """,
    "oracle.py": """\
        def expected(case):
            return sum(case.args[0]) + case.args[1]
    """,
    "statement.zh.md": "# 求和\n\n## 要写什么\n## 约定\n## 样例\n<!-- samples -->\n"
    "<!-- /samples -->\n## 为什么重要\n",
    "statement.en.md": "# A sum\n\n## What to build\n## Contract\n## Sample\n<!-- samples -->\n"
    "<!-- /samples -->\n## Why it matters\n",
}

# A right answer that is not the solution's own text.
GOOD = "def total(numbers, start):\n    for n in numbers:\n        start += n\n    return start\n"

MUTANTS = {
    "forgets_start": ("Forgets the start.", "sample", "result = start", "result = 0"),
    "starts_late": ("Skips the first number.", "sample", "in numbers:", "in numbers[1:]:"),
    "ends_early": ("Skips the last number.", "sample", "in numbers:", "in numbers[:-1]:"),
    "subtracts": ("Subtracts.", "sample", "result + number", "result - number"),
    "size_only": ("Takes sizes for numbers.", "edge", "result + number", "result + abs(number)"),
}


def write_problem(root: Path, **changes: str | None) -> Path:
    """Write the folder under `root`; `changes`: file name (with __ for /, _ for .) -> text."""
    folder = root / "practice" / "problems" / "ch01-total"
    files: dict[str, str | None] = {name: textwrap.dedent(text) for name, text in FILES.items()}
    solution = textwrap.dedent(FILES["solution.py"])
    for name, (why, group, old, new) in MUTANTS.items():
        files[f"mutants/{name}.py"] = f"# {why}\n# caught by: {group}\n" + solution.replace(
            old, new
        )
    for name, text in (files | changes).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(textwrap.dedent(text), "utf-8")
    return folder


def reader_file(root: Path) -> Path:
    """Where a reader of the repository `root` writes this problem."""
    return root / "workspace" / "practice" / "ch01-total.py"


def small_problem(root: Path, **changes: str | None) -> Problem:
    """The problem of `write_problem`, read."""
    return load_problem(write_problem(root, **changes))


class FakeBox:
    """Runs `call` jobs in this very process, and can end them as a real box would."""

    def __init__(self, ended: Ended = "done", after: int | None = None, answer: Any = None) -> None:
        self.jobs = 0
        self.cases: list[Any] = []
        self._ended = ended
        self._after = after
        self._answer = answer

    def run(self, job: dict[str, Any], cases: Iterable[Any], limits: Limits) -> JobResult:
        self.jobs += 1
        self.cases = list(cases)
        answers: list[Any] = []
        names: dict[str, Any] = {}
        try:
            exec(compile(job["files"]["submission.py"], "submission.py", "exec"), names)
        except Exception as error:
            return _result([_error(error)], "exited")
        for case in self.cases[: self._after]:
            if self._answer is not None:
                answers.append(self._answer)
                continue
            try:
                answers.append({"ok": names[job["entry"][1]](*case["args"], **case["kwargs"])})
            except Exception as error:
                answers.append(_error(error))
        return _result(answers, self._ended)


def _error(error: Exception) -> dict[str, Any]:
    return {"error": {"type": type(error).__name__, "message": str(error), "traceback": ""}}


def _result(answers: list[Any], ended: Ended) -> JobResult:
    return JobResult(answers, ended, "", "", "", 0.01, 0.01, 1.0)
