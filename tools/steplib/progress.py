"""Where the reader stands: steps whose tests passed on the reader's own code."""

import json
from datetime import UTC, datetime

from .build import state_folder
from .manifest import Step


def note_pass(step: Step) -> None:
    """Add one line to `.steps/progress.jsonl`."""
    entry = {"step": step.number, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    path = state_folder(step.folder.parents[1]) / "progress.jsonl"
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(entry) + "\n")
