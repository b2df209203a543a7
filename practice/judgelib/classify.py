"""From the answers of the box to a verdict: the first group that fails, its smallest input."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from practice.judgelib import show
from practice.judgelib.cases import GROUPS, SHOWN_WHOLE
from practice.judgelib.catalogue import Problem
from practice.judgelib.compare import Comparison, Difference, compare
from practice.judgelib.text import Text
from practice.judgelib.verdict import Code, Verdict

if TYPE_CHECKING:
    from practice.judgelib.box import JobResult
    from practice.judgelib.core import Planned

# How a job may end other than with all its cases answered, and what that means.
ENDED: dict[str, tuple[Code, Text]] = {
    "exited": ("RE", Text("进程没有回答就退出了", "the process ended without an answer")),
    "killed": ("RE", Text("进程崩溃了，没有回答", "the process crashed without an answer")),
    "timeout": ("TLE", Text("超过了时间限制", "it took longer than allowed")),
    "memory": ("MLE", Text("用的内存超过了限制", "it used more memory than allowed")),
    "output": ("OLE", Text("打印得太多", "it printed too much")),
    "violation": ("SV", Text("做了沙箱不允许的事", "it did what the sandbox does not allow")),
    "protocol": ("SV", Text("伪造或弄坏了判题通道", "it forged or broke the judge's channel")),
    "internal": ("IE", Text("沙箱出了问题", "the box failed")),
}
# What the box itself says of a function that changes its arguments (`inbox.child`), in Chinese.
CHANGED = "传进来的参数属于调用者，必须保持原样"
OUT_OF_MEMORY = ("MemoryError", "can't allocate memory", "not enough memory")


@dataclass(frozen=True)
class Failure:
    """A case that was not answered right: the how many-th it was, and why."""

    index: int
    planned: Planned
    code: Code
    message: Text
    difference: Difference | None = None
    traceback: str = ""


def classify(problem: Problem, planned: Sequence[Planned], result: JobResult) -> Verdict:
    """The verdict on the answers; AC only if there is a right one for every case."""
    failures: list[Failure] = []
    error = 0.0
    for index, (one, answer) in enumerate(zip(planned, result.answers, strict=False)):
        failure, comparison = _judge_answer(problem, index, one, answer)
        error = max(error, comparison.error)
        if failure:
            failures.append(failure)
    measured = Verdict(
        "AC",
        stdout=result.stdout,
        wall_s=result.wall_s,
        cpu_s=result.cpu_s,
        peak_mb=result.peak_mb,
        cases=len(result.answers) - len(failures),
        error=error,
    )
    if result.ended == "done" and len(result.answers) == len(planned) and not failures and planned:
        return measured
    if result.ended in ("violation", "protocol", "internal"):
        return _ended(measured, planned, result)
    # Code that cannot even be imported answers the first case with its error and ends.
    explained = result.ended == "exited" and len(result.answers) == len(failures) == 1
    if not explained and (result.ended != "done" or len(result.answers) != len(planned)):
        index = min(len(result.answers), len(planned) - 1)
        failures.append(Failure(index, planned[index], *_ending(result)))
    return _worst(problem, failures, measured, result.printed)


def _judge_answer(
    problem: Problem, index: int, one: Planned, answer: Any
) -> tuple[Failure | None, Comparison]:
    """Compare one answer: `{"ok": value}` or `{"error": {type, message, traceback}}`."""
    if type(answer) is dict and set(answer) == {"ok"}:
        comparison = compare(one.expected, answer["ok"], problem.tolerance)
        if comparison.equal:
            return None, comparison
        difference = comparison.difference
        assert difference is not None
        return Failure(index, one, "WA", difference.reason, difference), comparison
    comparison = Comparison(error=math.inf)
    raised = answer["error"] if type(answer) is dict and set(answer) == {"error"} else None
    if type(raised) is not dict:
        return Failure(index, one, "SV", ENDED["protocol"][1]), comparison
    kind, text = str(raised.get("type", "")), str(raised.get("message", ""))
    code: Code = "MLE" if any(sign in f"{kind} {text}" for sign in OUT_OF_MEMORY) else "RE"
    words = show.cut(f"{kind}: {text}" if text else kind, 500)
    message = Text(f"{kind}：{CHANGED}" if kind == "InputChanged" else words, words)
    trace = show.cut(str(raised.get("traceback", "")), 3000)
    return Failure(index, one, code, message, traceback=trace), comparison


def _ending(result: JobResult) -> tuple[Code, Text]:
    """What the end of a job means, with what the box has to add to it."""
    code, message = ENDED.get(result.ended, ENDED["exited"])
    detail = show.cut(result.detail.strip(), 1000)
    if detail:
        message = Text(f"{message.zh}（{detail}）", f"{message.en} ({detail})")
    return code, message


def _ended(measured: Verdict, planned: Sequence[Planned], result: JobResult) -> Verdict:
    """A job whose end says more than any of its answers."""
    code, message = _ending(result)
    verdict = dataclasses.replace(measured, code=code, message=message)
    if not planned:
        return verdict
    one = planned[min(len(result.answers), len(planned) - 1)]
    return dataclasses.replace(verdict, group=one.group, label=_label(one))


def _label(one: Planned) -> Text:
    return Text(one.case.zh, one.case.en)


def _worst(
    problem: Problem, failures: list[Failure], measured: Verdict, printed: Sequence[str]
) -> Verdict:
    """What the reader sees: of the first failing group the smallest input."""
    if not failures:  # nothing was planned: nothing was proved
        message = Text("没有用例", "there are no cases")
        return dataclasses.replace(measured, code="IE", message=message)
    first = min(GROUPS.index(failure.planned.group) for failure in failures)
    group = [one for one in failures if one.planned.group == GROUPS[first]]
    worst = min(group, key=lambda one: show.size(one.planned.payload))
    seen = GROUPS[first] in SHOWN_WHOLE
    verdict = dataclasses.replace(
        measured,
        code=worst.code,
        message=worst.message,
        group=GROUPS[first],
        label=_label(worst.planned),
        case=input_text(problem, worst.planned, seen),
        traceback=worst.traceback,
        stdout=printed[worst.index] if worst.index < len(printed) else measured.stdout,
    )
    return _with_difference(verdict, worst, seen) if worst.difference else verdict


def _with_difference(verdict: Verdict, worst: Failure, seen: bool) -> Verdict:
    difference = worst.difference
    assert difference is not None
    text = show.whole if seen else show.brief
    where = difference.where
    step = difference.path[0] if difference.path else None
    ops = worst.planned.case.ops
    if type(ops) is list and type(step) is int and step < len(ops):
        where = f"{where}  ← {show.cut(repr(ops[step]), show.BRIEF)}"
    expected, got = text(difference.expected), text(difference.got)
    return dataclasses.replace(verdict, expected=expected, got=got, first_wrong_index=where)


def input_text(problem: Problem, one: Planned, seen: bool) -> str:
    """The input whole for samples and basic cases, else what is small of it, and shapes."""
    text = show.whole if seen else show.brief
    if problem.kind != "call":
        return text(one.case.ops)
    words = (part.partition(":")[0].partition("=")[0] for part in problem.signature.split(","))
    names = [word.strip("() *") for word in words]
    names = [name for name in names if name.isidentifier()]
    given = dict(zip(names, one.case.args, strict=False)) | one.case.kwargs
    return "\n".join(f"{name} = {text(value)}" for name, value in given.items())
