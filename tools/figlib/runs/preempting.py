"""The recorder of chapter 13."""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))  # behind the tree of the step

from tools.figlib.runs.listening import Trace, listen, run_example

FIRST_UID = 1000  # of the example's own requests; those of `generate` have lower numbers


def ready() -> None:
    """The processes of the step need no setting up."""


def ch13_preemption(_: None) -> Trace:
    """The passes of the example's runs: who was in each, and who had which pages after it."""
    from minisgl.scheduler import scheduler, trace

    runs: list[Run] = []

    def made(_: None, one: Any) -> None:
        runs.append(Run(one))

    def stepped(_: None, one: Any, *__: object) -> None:
        if one.trace is not None:
            runs[-1].after_step(one)

    listen(trace.Trace, "__init__", made)
    listen(scheduler.Scheduler, "step", stepped)
    run_example("ch13_preemption")
    longest, expected, last_page = runs
    return {
        "longest": longest.counted(),
        "expected": expected.counted(),
        "last_page": {"page_size": last_page.page_size, "steps": last_page.steps},
        "num_pages": {"two": longest.num_pages, "last": last_page.num_pages},
    }


class Run:
    """What the requests of one trace did, step by step, with their numbers in order of arrival."""

    def __init__(self, trace: Any) -> None:
        self.steps: list[Trace] = []
        self.num_pages = self.page_size = 0
        self._trace = trace
        self._seen = 0
        self._numbers: dict[int, int] = {}

    def after_step(self, scheduler: Any) -> None:
        """Remember a step of our own requests; others, such as a warm-up, are left out."""
        events = self._trace.events[self._seen :]
        self._seen = len(self._trace.events)
        batch = [event["lengths"] for event in events if event["event"] == "launch"]
        if not batch or min(batch[0]) < FIRST_UID:
            return
        for uid in batch[0]:
            self._numbers.setdefault(uid, len(self._numbers))
        self.num_pages = scheduler.engine.num_pages
        self.page_size = scheduler.engine.config.page_size
        running = {self._numbers[one.uid]: one.req for one in scheduler._running()}
        held = {page for req in running.values() for page in req.cache_handle.pages}
        self.steps.append(
            {
                "batch": [[self._numbers[uid], *two] for uid, two in batch[0].items()],
                "retracted": self._those(events, "retract"),
                "done": self._those(events, "finish"),
                "pages": {str(n): req.cache_handle.pages for n, req in running.items()},
                "cached": {str(n): req.cached_len for n, req in running.items()},
                "kept": sorted({*scheduler._cache._tree.pages()} - held),
            }
        )

    def _those(self, events: list[Trace], kind: str) -> list[int]:
        return [self._numbers[event["uid"]] for event in events if event["event"] == kind]

    def counted(self) -> list[Trace]:
        """Who was in each pass, and the numbers of pages: held, and those of them with KV."""
        found: list[Trace] = []
        for step in self.steps:
            held, written = set[int](), set[int]()
            for number, pages in step["pages"].items():
                held.update(pages)
                written.update(pages[: -(-step["cached"][number] // self.page_size)])
            counts = {"held": len(held), "written": len(written)}
            found.append({"batch": step["batch"]} | counts)
        return found
