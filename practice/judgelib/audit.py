"""The audit: a problem is checked harder than its readers. Every fault is one line.

A starter fails, every correct solution passes on many seeds well within its limits, every planted
mistake is caught by the group that it names, small automatic changes are caught, cheats never
pass, the expected values say something, and the statements are what the code gives.
"""

from __future__ import annotations

import dataclasses
import math
import random
import time
import zlib
from dataclasses import dataclass, field

from practice.judgelib import engine, folder, mutate
from practice.judgelib.cases import GROUPS
from practice.judgelib.catalogue import Problem
from practice.judgelib.cheats import cheats
from practice.judgelib.core import Runs, judge
from practice.judgelib.guesses import case_faults
from practice.judgelib.verdict import Verdict

PROOF = ("WA", "RE", "TLE", "MLE", "OLE", "SV")  # codes that say that a mutant was caught
MARGIN = 5.0
SHARE_OF_LIMITS = 3.0


@dataclass(frozen=True)
class Tier:
    """How much the audit does."""

    solution_seeds: int
    mutant_seeds: int
    hand: int
    automatic: int  # 0: as many as are left to ten


FULL = Tier(solution_seeds=20, mutant_seeds=30, hand=10_000, automatic=40)
QUICK = Tier(solution_seeds=1, mutant_seeds=1, hand=5, automatic=0)
QUICK_MUTANTS = 10


@dataclass
class Report:
    """What the audit found on one problem; it is good when `faults` is empty."""

    problem: Problem
    faults: list[str] = field(default_factory=list)
    starter: str = ""
    passes: int = 0
    runs: int = 0
    hand_killed: int = 0
    hand: int = 0
    killed: int = 0
    automatic: int = 0
    survivors: list[tuple[str, str]] = field(default_factory=list)  # (what, reason or "")
    cheats: int = 0
    solution_error: float = 0.0
    mutant_error: float = math.inf
    slowest_s: float = 0.0
    seconds: float = 0.0


def audit(problem: Problem, box: Runs | None, tier: Tier) -> Report:
    """Check one problem; nothing is raised, everything wrong is in the report."""
    started = time.perf_counter()
    report = Report(problem)
    report.faults += folder.faults(problem)
    if not engine.has_step(problem):
        report.faults.append("its step is not here: nothing was judged")
    elif not report.faults:
        for check in (_starter, _solutions, _hand_mutants, _cheats, _values, _automatic, _margins):
            try:
                check(report, box, tier)
            except Exception as error:  # the problem's own code, or the box
                report.faults.append(f"{check.__name__[1:]}: {type(error).__name__}: {error}")
    report.seconds = time.perf_counter() - started
    return report


def seeds(problem: Problem, count: int) -> list[int]:
    """The seeds of a problem, the same in every audit."""
    first = zlib.crc32(problem.id.encode())
    return [first + index for index in range(count)]


def _starter(report: Report, box: Runs | None, tier: Tier) -> None:
    problem = report.problem
    verdict = judge(problem, engine.starter(problem), box=box, seed=seeds(problem, 1)[0])
    wanted = "WA" if problem.kind in ("bug", "predict") else "RE"
    report.starter = verdict.code
    is_stub = wanted == "WA" or "NotImplementedError" in verdict.message.en
    if verdict.code != wanted or not is_stub:
        report.faults.append(f"the starter gives {_said(verdict)}, not {wanted}")


def _solutions(report: Report, box: Runs | None, tier: Tier) -> None:
    problem = report.problem
    sources = {"the solution": engine.solution(problem)}
    for name, text in problem.files("alt").items():
        sources[f"alt/{name}"] = engine.variant(problem, text)
    for name, source in sources.items():
        for index, seed in enumerate(seeds(problem, tier.solution_seeds)):
            # The step's own tests, which belong to a whole verdict, draw nothing from the seed.
            groups = GROUPS if index else None
            verdict = judge(problem, source, box=box, seed=seed, groups=groups)
            report.runs += 1
            report.passes += verdict.accepted
            if not verdict.accepted:
                report.faults.append(f"{name} fails: {_said(verdict)}")
                break
            report.solution_error = max(report.solution_error, verdict.error)
            report.slowest_s = max(report.slowest_s, verdict.wall_s)
            _within_limits(report, name, verdict)


def _within_limits(report: Report, name: str, verdict: Verdict) -> None:
    limits = report.problem.limits
    for what, used, most in (
        ("s", verdict.wall_s, limits.wall_s),
        ("MB", verdict.peak_mb, limits.memory_mb),
    ):
        if used > most / SHARE_OF_LIMITS:
            report.faults.append(f"{name} uses {used:.1f} of {most:g} {what}, more than a third")


def _hand_mutants(report: Report, box: Runs | None, tier: Tier) -> None:
    problem = report.problem
    every = sorted(problem.files("mutants").items())
    if len(every) > tier.hand:
        every = sorted(random.Random(problem.id).sample(every, tier.hand))
    for name, text in every:
        group, source = folder.caught_by(text), engine.variant(problem, text)
        largest = 0.0
        report.hand += 1
        for seed in seeds(problem, tier.mutant_seeds):
            verdict = judge(problem, source, box=box, seed=seed, groups=[group])
            if verdict.code not in PROOF:
                report.faults.append(f"mutants/{name} is not caught by {group}: {_said(verdict)}")
                break
            error = verdict.error if verdict.code == "WA" else math.inf
            report.mutant_error = min(report.mutant_error, error)
            largest = max(largest, error)
        else:
            report.hand_killed += 1


def _cheats(report: Report, box: Runs | None, tier: Tier) -> None:
    # What they do must fail, not the names that they use.
    problem = dataclasses.replace(report.problem, banned=())
    for what, source in cheats(problem).items():
        verdict = judge(problem, source, box=box, seed=seeds(problem, 1)[0])
        report.cheats += 1
        if verdict.code not in (*PROOF, "CE"):
            report.faults.append(f"a program that {what} gets {_said(verdict)}")


def _values(report: Report, box: Runs | None, tier: Tier) -> None:
    report.faults += case_faults(report.problem, *seeds(report.problem, 2))


def _automatic(report: Report, box: Runs | None, tier: Tier) -> None:
    problem = report.problem
    if problem.kind == "predict":
        return  # nothing to change: its mutants are answers
    most = tier.automatic or max(0, QUICK_MUTANTS - report.hand)
    symbols = problem.step.symbols if problem.step else ()
    found = mutate.sampled(engine.solution(problem), symbols, most, problem.id)
    wall_s = max(1.0, 10 * report.slowest_s)
    for mutant in found:
        verdict = _first_failure(problem, mutant.source, box, wall_s)
        report.automatic += 1
        report.killed += verdict.code in (*PROOF, "CE")
        if verdict.code not in (*PROOF, "CE"):
            reason = problem.survivors.get(mutant.what, "")
            report.survivors.append((mutant.what, reason))
            if not reason:
                report.faults.append(f"automatic mutant survives without a reason: {mutant.what}")


def _first_failure(problem: Problem, source: str, box: Runs | None, wall_s: float) -> Verdict:
    """Up to three seeds: a change that only shows now and then is caught by one of them."""
    verdict = Verdict("IE")
    for seed in seeds(problem, 3):
        verdict = judge(problem, source, box=box, seed=seed, wall_s=wall_s)
        if not verdict.accepted:
            break
    return verdict


def _margins(report: Report, box: Runs | None, tier: Tier) -> None:
    tolerance = report.problem.tolerance
    if tolerance is None:
        return
    if report.solution_error > tolerance / MARGIN:
        text = f"a correct solution has an error of {report.solution_error:.2g}"
        report.faults.append(f"{text}, more than a fifth of {tolerance:g}")
    if report.mutant_error < tolerance * MARGIN:
        text = f"a mutant has an error of only {report.mutant_error:.2g}"
        report.faults.append(f"{text}, less than five times {tolerance:g}")


def _said(verdict: Verdict) -> str:
    where = f" in {verdict.group}" if verdict.group else ""
    why = f"{verdict.message.en} {verdict.label.en}".strip()
    return f"{verdict.code}{where} (seed {verdict.seed}) {why}".strip()
