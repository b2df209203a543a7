"""`audit`: run it over the problems, print the table, say what is wrong."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence

from practice.judgelib import audit, sessions
from practice.judgelib.catalogue import Catalogue
from practice.judgelib.samples import write_samples

KILL_RATE = 0.96  # over all problems; what is left is proved to change nothing


def run_audit(
    catalogue: Catalogue, ids: Sequence[str], quick: bool, write: bool, level: int | None
) -> int:
    """Audit these problems, or all; the exit status is 0 only when nothing is wrong."""
    problems = [catalogue[id] for id in ids] if ids else list(catalogue.problems)
    if write:
        for problem in problems:
            for name in write_samples(problem):
                print(f"{problem.id}/{name}: written")
    reports: list[audit.Report] = []
    with contextlib.ExitStack() as open_boxes:
        # The same boxes as a reader's: without torch where a problem says it needs none.
        boxes = {
            torch: open_boxes.enter_context(sessions.box_with(torch, level))
            for torch in sorted({problem.torch for problem in problems})
        }
        for number, problem in enumerate(problems, 1):
            if sys.stderr.isatty():
                print(f"\r{number}/{len(problems)} {problem.id:<30}", end="", file=sys.stderr)
            tier = audit.QUICK if quick else audit.FULL
            reports.append(audit.audit(problem, boxes[problem.torch], tier))
    if sys.stderr.isatty():
        print("\r" + " " * 50 + "\r", end="", file=sys.stderr)
    faults = [] if ids else list(catalogue.broken)
    faults += [f"{one.problem.id}: {fault}" for one in reports for fault in one.faults]
    if not reports:
        faults.append("there is no problem to audit")
    if not ids and not quick and kill_rate(reports) < KILL_RATE:  # a few mutants give no rate
        rate, wanted = f"{kill_rate(reports):.1%}", f"{KILL_RATE:.0%}"
        faults.append(f"only {rate} of the automatic mutants are caught, not {wanted}")
    print("\n".join([*table(reports), *(f"✗ {fault}" for fault in faults)]))
    return 1 if faults else 0


def table(reports: list[audit.Report]) -> Iterator[str]:
    """The audit as lines: one per problem, the sums, the survivors, the faults."""
    yield (
        f"{'problem':<28}{'kind':<8}{'starter':<8}{'correct':>9}{'mutants':>9}{'auto':>8}"
        f"{'cheats':>7}{'error':>9}{'least':>9}{'slowest':>9}{'time':>8}"
    )
    for one in reports:
        yield line(one)
    killed, total = sum(one.killed for one in reports), sum(one.automatic for one in reports)
    rate = killed / total if total else 1.0
    seconds = sum(one.seconds for one in reports)
    caught = f"automatic mutants killed {killed}/{total} = {rate:.1%}"
    yield f"{len(reports)} problems, {caught}, {seconds:.0f} s"
    for one in reports:
        for what, reason in one.survivors:
            yield f"  survivor {one.problem.id}: {what}: {reason or 'NO REASON GIVEN'}"


def line(one: audit.Report) -> str:
    """The line of one problem."""
    error = least = "-"
    if one.problem.tolerance:
        error, least = f"{one.solution_error:.1g}", f"{one.mutant_error:.1g}"
    return (
        f"{one.problem.id:<28}{one.problem.kind:<8}{one.starter:<8}"
        f"{f'{one.passes}/{one.runs}':>9}{f'{one.hand_killed}/{one.hand}':>9}"
        f"{f'{one.killed}/{one.automatic}':>8}{one.cheats:>7}{error:>9}{least:>9}"
        f"{one.slowest_s:>7.2f} s{one.seconds:>6.1f} s"
    )


def kill_rate(reports: list[audit.Report]) -> float:
    """The share of automatic mutants that were caught, over all problems."""
    total = sum(one.automatic for one in reports)
    return sum(one.killed for one in reports) / total if total else 1.0
