"""The step's own tests on a submission: they can turn an AC into a WA, never make one.

problem.toml names test functions that take no fixtures; they run in the box, in a job of their
own, after all cases came out right. Their files and the modules that they import travel with it,
and a few lines in the place of pytest, whose import alone takes longer than all the rest.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from practice.judgelib import engine, show
from practice.judgelib.catalogue import Place, Problem
from practice.judgelib.text import Text
from practice.judgelib.verdict import Verdict
from tools.steplib.build import assemble

HERE = Path(__file__).parent / "boxed"
RUNNER = ("driver.py", "pytest.py")

if TYPE_CHECKING:
    from practice.judgelib.box import Limits
    from practice.judgelib.core import Runs


def run_step_tests(
    problem: Problem, text: str, box: Runs, accepted: Verdict, limits: Limits
) -> Verdict:
    """The verdict `accepted`, or a WA that names the test which says otherwise."""
    place = engine.place_of(problem)
    tests = _test_files(engine.root_of(problem), place)
    files = engine.box_files(problem, text) | tests | _runner()
    cases = [_case(test) for test in place.tests]
    job: dict[str, Any] = {"files": files, "entry": ["driver", "run"], "torch": problem.torch}
    result = box.run(job, cases, limits)
    for test, answer in zip(place.tests, result.answers, strict=False):
        count = answer.get("ok") if type(answer) is dict else None
        if type(count) is not int or count < 1:
            error = answer.get("error", {}) if type(answer) is dict else {}
            what = f"{test}: {error.get('type', '')}: {error.get('message', '')}"
            message = Text(f"这一步的测试不通过：{what}", f"a test of this step fails: {what}")
            trace = show.cut(str(error.get("traceback", "")), 3000)
            return dataclasses.replace(accepted, code="WA", message=message, traceback=trace)
    if result.ended != "done" or len(result.answers) != len(cases):
        what = f"{result.ended} {result.detail}".strip()
        message = Text(f"这一步的测试没有跑完：{what}", f"the step's tests did not finish: {what}")
        return dataclasses.replace(accepted, code="WA", message=message)
    return accepted


def _runner() -> dict[str, str]:
    return {name: (HERE / name).read_text("utf-8") for name in RUNNER}


def _case(test: str) -> list[str]:
    path, _, name = test.partition("::")
    return [path.removeprefix("tests/").removesuffix(".py"), name]


@lru_cache(maxsize=64)
def _test_files(root: Path, place: Place) -> dict[str, str]:
    """The named test files and their helpers, at the top, where the box imports them from."""
    wanted = sorted({test.partition("::")[0] for test in place.tests})
    found = assemble(engine.book_of(root), place.number, package={}, tests=wanted)
    return {
        path.rpartition("/")[2]: content.decode()
        for path, content in found.items()
        if path.startswith(("tests/", "examples/")) and path.endswith(".py")
    }
