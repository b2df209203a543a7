"""From a submission to a verdict: static stage, cases, oracle, box, comparison.

What is expected is worked out here and stays here. The box answers one frame per case; accepted
is a submission all of whose cases came back and compared equal, and nothing else is looked at.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib.util
import random
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from practice.judgelib import engine, static
from practice.judgelib.cases import GROUPS, Case
from practice.judgelib.catalogue import Problem, fault
from practice.judgelib.classify import classify
from practice.judgelib.predict import check_form, judge_answers
from practice.judgelib.steptests import run_step_tests
from practice.judgelib.text import JudgeError, Text
from practice.judgelib.verdict import Verdict
from tools.steplib import StepError

if TYPE_CHECKING:
    from practice.judgelib.box import JobResult, Limits


class Runs(Protocol):
    """What the pipeline needs of a box."""

    def run(self, job: dict[str, Any], cases: Iterable[Any], limits: Limits) -> JobResult: ...


@dataclass(frozen=True)
class Planned:
    """A case with its group and with what the oracle expects of it."""

    group: str
    case: Case
    payload: Any
    expected: Any


def judge(
    problem: Problem,
    source: str | bytes,
    *,
    box: Runs | None,
    seed: int,
    groups: Sequence[str] | None = None,
    wall_s: float | None = None,
) -> Verdict:
    """Judge a submission on the cases of `seed`, of all groups or of those named.

    `box` may be None for a problem that runs nothing (`predict`). `wall_s` shortens the limit.
    A fault of ours gives IE, something that is not here SK; neither is ever an AC.
    """
    return _answered(lambda: _judge(problem, source, box, seed, groups, wall_s), seed)


def try_samples(problem: Problem, source: str | bytes, *, box: Runs | None, seed: int) -> Verdict:
    """What `run` says: the samples alone; of a `predict`, which has no others, only the form."""
    if problem.kind != "predict":
        return judge(problem, source, box=box, seed=seed, groups=["sample"])
    return _answered(lambda: check_form(problem, static.decode(_bytes(source))), seed)


def _answered(work: Callable[[], Verdict], seed: int) -> Verdict:
    """The verdict of `work`; what it raises is one too."""
    try:
        verdict = work()
    except static.Rejected as rejected:
        verdict = rejected.verdict
    except JudgeError as error:
        verdict = Verdict("IE", error.text)
    except StepError as error:
        verdict = Verdict("IE", Text(str(error), str(error)))
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        trace = "".join(traceback.format_tb(error.__traceback__)[-3:])
        verdict = Verdict("IE", Text(what, what), traceback=trace)
    return dataclasses.replace(verdict, seed=seed).legible()


def _judge(
    problem: Problem,
    source: str | bytes,
    box: Runs | None,
    seed: int,
    groups: Sequence[str] | None,
    wall_s: float | None,
) -> Verdict:
    if not engine.has_step(problem):
        assert problem.step is not None
        number = problem.step.number
        return Verdict("SK", Text(f"这里没有第 {number} 步", f"step {number} is not here"))
    text = static.decode(_bytes(source))
    if problem.kind == "predict":
        return judge_answers(problem, text, plan(problem, seed, groups))
    reference = engine.reference(problem) if problem.step else ""
    static.check(problem, text, reference, engine.modules_of(problem))
    planned = plan(problem, seed, groups)
    if box is None:
        return Verdict("SK", Text("没有沙箱", "there is no box"))
    limits = limits_of(problem, wall_s)
    result = box.run(job_of(problem, text), [one.payload for one in planned], limits)
    verdict = classify(problem, planned, result)
    if verdict.accepted and groups is None and problem.step and problem.step.tests:
        verdict = run_step_tests(problem, text, box, verdict, limits)
    return verdict


def _bytes(source: str | bytes) -> bytes:
    return source.encode() if isinstance(source, str) else source


def plan(problem: Problem, seed: int, groups: Sequence[str] | None = None) -> list[Planned]:
    """The cases of a seed with their expected values, in the order of the groups."""
    drawn = load(problem, "cases.py").cases(random.Random(seed))
    unknown = set(drawn) - set(GROUPS)
    if unknown or not drawn.get("sample"):
        wrong = f"cases.py: no such group: {unknown}" if unknown else "cases.py: no sample"
        raise fault(problem.folder, wrong, wrong)
    expected = load(problem, "oracle.py").expected
    wanted = [group for group in GROUPS if group in drawn and (groups is None or group in groups)]
    return [
        # The oracle gets a copy: what it does to it must not reach the box.
        Planned(group, case, payload_of(problem, case), expected(copy.deepcopy(case)))
        for group in wanted
        for case in drawn[group]
    ]


def payload_of(problem: Problem, case: Case) -> Any:
    """What the box gets for a case."""
    return {"args": list(case.args), "kwargs": case.kwargs} if problem.kind == "call" else case.ops


def job_of(problem: Problem, text: str) -> dict[str, Any]:
    """What the box gets before the cases."""
    entry = ["submission", problem.entry] if problem.kind == "call" else ["driver", "run"]
    files, absent = engine.box_files(problem, text), list(problem.banned)
    return {"files": files, "entry": entry, "torch": problem.torch, "absent": absent}


def limits_of(problem: Problem, wall_s: float | None = None) -> Limits:
    """The problem's limits in the words of the box."""
    from practice.judgelib.box import Limits

    bounds = problem.limits
    wall = min(bounds.wall_s, wall_s or bounds.wall_s)
    return Limits(
        wall_s=wall,
        cpu_s=int(wall) + 1,
        memory_mb=bounds.memory_mb,
        output_bytes=bounds.output_bytes,
        case_s=min(bounds.case_s, wall),
    )


def load(problem: Problem, name: str) -> ModuleType:
    """A trusted module of the problem's folder, loaded anew when its file has changed."""
    path = problem.folder / name
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        raise fault(problem.folder, f"没有 {name}", f"there is no {name}") from None
    return _load(path, changed)


@lru_cache(maxsize=256)
def _load(path: Path, changed: int) -> ModuleType:
    name = f"practice_{path.parent.name.replace('-', '_')}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
