"""The problems: one folder each, and the judge knows nothing of a problem but its folder.

    practice/problems/ch08-radix-split/
      problem.toml
      statement.zh.md  statement.en.md   the headings of `folder.HEADINGS`, in that order
      starter.py                         what the reader gets; must not pass  (call, ops, predict)
      solution.py                        the reference                        (call, ops, predict)
      alt/*.py                           at least one different correct solution; must pass
      mutants/*.py                       at least five one-bug solutions; must fail
      cases.py  oracle.py                see `cases`
      driver.py                          in the box: `run(ops) -> results`    (ops, engine, bug)

For `engine` and `bug` the solution is the step's own file and the starter is made from it, so
alternatives and mutants are *replacements of symbols*: a file that holds only the functions, and
the methods in their classes, that differ (see `engine`). The file `mutants/planted.py` of a `bug`
problem is the fault that its starter has; it is one of the mutants.

Line 1 of a mutant is a comment with the misconception, line 2 is `# caught by: GROUP`.

A `driver.py` imports the reader's code (`from submission import Allocator`; for `engine` and `bug`
`from minisgl.core import Req`), runs one case's operations and returns plain results. It runs
beside the reader's code, so it knows nothing of what is expected: it reports, the judge compares.

problem.toml:

    id = "ch08-radix-split"        # the folder's name; stable for ever
    chapter = 8
    kind = "engine"                # call | ops | engine | bug | predict
    difficulty = "hard"            # easy | medium | hard
    torch = true                   # whether the code needs torch (optional, false)
    entry = "attention"            # call: the function; ops: the class
    signature = "(q, k, v, scale)" # call: of the function; ops: of its __init__, without self
    methods = ["allocate(n)"]      # ops, optional: methods with their parameters, without self
    tolerance = 1e-5               # optional: largest absolute error of floats; absent: exact
    banned = ["softmax"]           # optional: operators of torch, absent in the box; see `banned`
    banned_reason = {zh = "…", en = "…"}                           # optional
    [title]
    zh = "…"
    en = "…"
    [hints]                        # three in each language, from direction to nearly the answer
    zh = ["…", "…", "…"]
    en = ["…", "…", "…"]
    [limits]                       # optional, each of them
    wall_s = 10.0
    case_s = 5.0
    memory_mb = 512
    output_bytes = 65536
    [step]                         # engine, bug
    number = 8
    path = "minisgl/kvcache/radix_tree.py"
    symbols = ["RadixTree._split"]
    tests = ["tests/test_ch08_radix_cache.py::test_x"]             # optional, see `steptests`
    [survivors]                    # optional: automatic mutants that no test can tell apart
    "max: a < b → a <= b" = "equal values give the same maximum"
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from practice.judgelib.settings import read_settings
from practice.judgelib.text import JudgeError, Text

YOURSELF = Text("这道题要你自己写出它", "this problem asks you to write it yourself")


@dataclass(frozen=True)
class Place:
    """The file of a step that the reader writes in, and which of its symbols."""

    number: int
    path: str
    symbols: tuple[str, ...]
    tests: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bounds:
    """What a submission may use: seconds for all cases and for one, MiB, bytes printed."""

    wall_s: float = 10.0
    case_s: float = 5.0
    memory_mb: int = 512
    output_bytes: int = 65536


@dataclass(frozen=True)
class Problem:
    """A problem as its problem.toml states it; the rest lies beside that file."""

    folder: Path
    id: str
    chapter: int
    kind: str
    difficulty: str
    title: Text
    hints: tuple[Text, ...]
    torch: bool = False
    entry: str = ""
    signature: str = ""
    methods: tuple[str, ...] = ()
    tolerance: float | None = None
    banned: tuple[str, ...] = ()
    banned_reason: Text = YOURSELF
    limits: Bounds = Bounds()
    step: Place | None = None
    survivors: dict[str, str] = field(default_factory=dict)

    def read(self, name: str) -> str:
        """The text of a file in the folder; JudgeError when it is missing or not UTF-8."""
        try:
            return (self.folder / name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8"
            raise JudgeError(f"{self.id}/{name}：{why}", f"{self.id}/{name}: {why}") from None

    def files(self, kind: str) -> dict[str, str]:
        """File name -> text of the folder `alt` or `mutants`, sorted."""
        names = sorted(path.name for path in self.folder.glob(f"{kind}/*.py"))
        return {name: self.read(f"{kind}/{name}") for name in names}

    def statement(self) -> Text:
        """The statement in both languages."""
        return Text(self.read("statement.zh.md"), self.read("statement.en.md"))


@dataclass(frozen=True)
class Catalogue:
    """All problems, by chapter and difficulty, and a line for each folder that is not one."""

    problems: tuple[Problem, ...]
    broken: tuple[str, ...]

    def __getitem__(self, id: str) -> Problem:
        for problem in self.problems:
            if problem.id == id:
                return problem
        ids = [problem.id for problem in self.problems]
        if id.isdecimal() and 0 < int(id) <= len(ids):  # the number that the list shows
            return self.problems[int(id) - 1]
        near = difflib.get_close_matches(id, ids, 1, 0.0) if id and ids else []
        near = [other for other in ids if id and id.lower() in other][:1] or near
        if not near:
            raise JudgeError(f"没有题目 {id!r}", f"there is no problem {id!r}")
        raise JudgeError(
            f"没有题目 {id!r}；最接近的是 {near[0]}",
            f"there is no problem {id!r}; the nearest is {near[0]}",
        )


def load_catalogue(root: Path) -> Catalogue:
    """Read every folder under `practice/problems`; a broken one does not hide the others."""
    problems, broken = [], []
    for folder in sorted((root / "practice" / "problems").glob("*/")):
        if folder.name.startswith((".", "_")):
            continue
        try:
            problems.append(load_problem(folder))
        except JudgeError as error:
            broken.append(str(error))
    order = {"easy": 0, "medium": 1, "hard": 2}
    problems.sort(key=lambda one: (one.chapter, order[one.difficulty], one.id))
    return Catalogue(tuple(problems), tuple(broken))


def load_problem(folder: Path) -> Problem:
    """Read one folder's problem.toml; JudgeError, one line, for the first fault in it."""
    path = folder / "problem.toml"
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError:
        raise fault(folder, "没有 problem.toml", "there is no problem.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise fault(folder, f"problem.toml：{error}", f"problem.toml: {error}") from None
    wrong = read_settings(data, folder.name)
    if wrong:
        raise fault(folder, f"problem.toml：{wrong}", f"problem.toml: {wrong}")
    return _problem(folder, data)


def fault(folder: Path, zh: str, en: str) -> JudgeError:
    """An error that names the problem's folder."""
    return JudgeError(f"{folder.name}：{zh}", f"{folder.name}: {en}")


def _problem(folder: Path, data: dict[str, Any]) -> Problem:
    values = dict(data)
    hints = values.pop("hints")
    values["hints"] = tuple(Text(*pair) for pair in zip(hints["zh"], hints["en"], strict=True))
    for key in ("title", "banned_reason"):
        if key in values:
            values[key] = Text(**values[key])
    if "limits" in values:
        values["limits"] = Bounds(**values["limits"])
    for key in ("methods", "banned"):
        values[key] = tuple(values.get(key, ()))
    if "step" in values:
        step = dict(values["step"])
        for key in ("symbols", "tests"):
            step[key] = tuple(step.get(key, ()))
        values["step"] = Place(**step)
    return Problem(folder=folder, **values)
