"""Lets the machine work through a pass in steps of a millisecond, reading and multiplying."""

from typing import Any

from practice.judgelib.cases import Case

KINDS = ("fp32", "bf16_imitated", "bf16")


def expected(case: Case) -> dict[str, Any]:
    trace = case.ops
    reading = {kind: finish(trace, kind, 0) for kind in KINDS}
    return {
        "read_ms": [reading[kind] for kind in KINDS],
        "ridge_rows": [ridge(trace, kind) for kind in KINDS],
        "fp32_ms": [finish(trace, "fp32", rows) for rows in (1, 8, 32, 100)],
        "imitated_ms": [finish(trace, "bf16_imitated", rows) for rows in (1, 8, 32, 100)],
        "bf16_ms": [finish(trace, "bf16", rows) for rows in (1, 8, 32, 100)],
        "imitating_pays": [
            finish(trace, "bf16_imitated", rows) < finish(trace, "fp32", rows)
            for rows in (1, 4, 8, 16)
        ],
        "tokens_per_second": [
            rows * 1000 // finish(trace, "fp32", rows) for rows in (8, 32, 64, 100)
        ],
        "intensity": [operations(trace, 8) // size(trace, kind) for kind in ("fp32", "bf16")],
        "plain_gflop_s": operations(trace, 8) // (trace["plain_fp32_ms"][8] * 10**6),
        "plain_is_slower": trace["plain_fp32_ms"][8] // finish(trace, "fp32", 8),
    }


def size(trace: dict[str, Any], kind: str) -> int:
    return int(trace["weights"] * trace["kinds"][kind]["bytes"])


def operations(trace: dict[str, Any], rows: int) -> int:
    return 2 * int(trace["weights"]) * rows


def finish(trace: dict[str, Any], kind: str, rows: int) -> int:
    """The first millisecond at which all is read and all is multiplied."""
    left, todo = size(trace, kind), operations(trace, rows)
    milliseconds = 0
    while left > 0 or todo > 0:
        left -= trace["read_gb_s"] * 10**6
        todo -= trace["kinds"][kind]["gflop_s"] * 10**6
        milliseconds += 1
    return milliseconds


def ridge(trace: dict[str, Any], kind: str) -> int:
    """The most rows that take no longer than reading alone."""
    rows = 0
    while finish(trace, kind, rows + 1) <= finish(trace, kind, 0):
        rows += 1
    return rows
