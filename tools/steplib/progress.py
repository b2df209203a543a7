"""Where the reader stands: steps whose tests passed on the reader's own code."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from tools.store import Store, StoreError

from .manifest import Step

T = TypeVar("T")


def note_pass(step: Step) -> None:
    """Record the pass where the judge's progress is too; the pass stands when that fails."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    _with_store(lambda store: store.put("steps", {"step": step.number, "at": at}), None)


def passed() -> set[int]:
    """Return the chapters that have passed; none where that cannot be read."""
    return _with_store(
        lambda store: {row["step"] for row in store.rows("SELECT * FROM steps")}, set()
    )


def _with_store(work: Callable[[Store], T], failed: T) -> T:
    try:
        with Store() as store:
            found, notice = work(store), store.notice
    except StoreError as error:
        found, notice = failed, str(error)
    if notice:
        print(f"steps.py: {notice}", file=sys.stderr)
    return found
