"""Where the reader stands: steps whose tests passed on the reader's own code."""

import sys
from datetime import UTC, datetime

from tools.store import Store, StoreError

from .manifest import Step


def note_pass(step: Step) -> None:
    """Record the pass where the judge's progress is too; the pass stands when that fails."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        with Store() as store:
            store.put("steps", {"step": step.number, "at": at})
            notice = store.notice
    except StoreError as error:
        notice = str(error)
    if notice:
        print(f"steps.py: {notice}", file=sys.stderr)
