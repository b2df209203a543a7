"""The judge's part of the store: submissions, hints and solutions, and what follows from them.

A submission is a row before it is judged, with its source: a judge that is killed in the middle
loses nothing, and the next call says that it was interrupted.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from practice.judgelib.verdict import NOT_COUNTED, Verdict
from tools.store import Row, Store

RUNNING_AT_MOST_S = 600.0
HINT_AFTER = 3
# Of a prediction: so many wrong tries are free, the next waits, and each after it twice as long.
FREE_TRIES = 3
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 120.0


@dataclass(frozen=True)
class Standing:
    """How far a reader has come with one problem."""

    accepted: bool = False
    failures: int = 0  # submissions that count, since the beginning, before the first AC
    hints: int = 0
    spoiled: bool = False

    @property
    def knows(self) -> bool:
        """Whether the reader has, or has seen, an answer."""
        return self.accepted or self.spoiled


class NoStore(Store):
    """In the place of a store that cannot be opened: it knows nothing and keeps nothing."""

    def __init__(self) -> None:
        self.notice = ""

    def put(self, table: str, row: Row) -> None:
        """Keep nothing."""

    def rows(self, query: str, *values: Any) -> list[Row]:
        """Find nothing."""
        return []

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """There is nobody to keep out."""
        yield

    def close(self) -> None:
        """Nothing was open."""


class Progress:
    """What the judge records and asks; a context manager around a `Store`.

    The order of submissions is that of their rows: a clock can be set back.
    """

    def __init__(self, store: Store | None = None) -> None:
        self.store = Store() if store is None else store

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def begin(self, problem: str, source: bytes, seed: int) -> str:
        """Record a submission as running and return its id."""
        return self._new(problem, source, seed, {"state": "running", "pid": os.getpid()})

    def enqueue(self, problem: str, source: bytes, seed: int, session: str, owner: str) -> str:
        """Record a submission that waits in the queue of the server `owner`; return its id."""
        row = {"state": "queued", "session": session, "owner": owner}
        return self._new(problem, source, seed, row)

    def _new(self, problem: str, source: bytes, seed: int, more: Row) -> str:
        id = uuid.uuid4().hex
        row: Row = {"id": id, "problem": problem, "source": source.decode("utf-8", "replace")}
        self.store.put("submissions", row | {"seed": seed, "at": time.time()} | more)
        return id

    def adopt(self, owner: str, is_alive: Callable[[Any], bool]) -> list[Row]:
        """Take over the queued submissions of servers that have died, oldest first.

        Of two servers that ask at once, one gets each of them.
        """
        query = "SELECT DISTINCT owner FROM submissions WHERE state = 'queued' AND owner IS NOT ?"
        owners = [row["owner"] for row in self.store.rows(query, owner)]
        dead = [one for one in owners if not is_alive(one)]
        if not dead:
            return []
        with self.store.exclusive():
            marks = ", ".join("?" * len(dead))
            query = f"SELECT * FROM submissions WHERE state = 'queued' AND owner IN ({marks})"
            found = self.store.rows(f"{query} ORDER BY rowid", *dead)
            for row in found:
                self.store.put("submissions", {"id": row["id"], "owner": owner})
        return found

    def finish(self, id: str, verdict: Verdict) -> None:
        """Record the verdict on a submission that `begin` recorded."""
        text = json.dumps(verdict.as_json(), ensure_ascii=False)
        row = {"id": id, "state": "done", "code": verdict.code, "verdict": text}
        self.store.put("submissions", row)

    def interrupted(self) -> list[Row]:
        """Mark submissions whose judge has died, and return them, oldest first."""
        rows = self.store.rows("SELECT * FROM submissions WHERE state = 'running' ORDER BY rowid")
        dead = [row for row in rows if not _is_judged_now(row)]
        for row in dead:
            self.store.put("submissions", {"id": row["id"], "state": "interrupted"})
        return dead

    def submission(self, id: str) -> Row | None:
        """One submission; None when there is none of this id."""
        found = self.store.rows("SELECT * FROM submissions WHERE id = ?", id)
        return found[0] if found else None

    def history(self, problem: str, most: int = -1) -> list[Row]:
        """The submissions for a problem, newest first; `most` of them, else all."""
        query = "SELECT * FROM submissions WHERE problem = ? ORDER BY rowid DESC LIMIT ?"
        return self.store.rows(query, problem, most)

    def drafts(self) -> set[str]:
        """The problems that have a draft."""
        query = "SELECT problem FROM drafts WHERE source IS NOT NULL"
        return {row["problem"] for row in self.store.rows(query)}

    def draft(self, problem: str) -> Row | None:
        """What the reader has written in the browser and not submitted; None when nothing."""
        query = "SELECT * FROM drafts WHERE problem = ? AND source IS NOT NULL"
        found = self.store.rows(query, problem)
        return found[0] if found else None

    def keep_draft(self, problem: str, source: str | None) -> None:
        """Put a draft in the place of the one before; None: back to the starter."""
        self.store.put("drafts", {"problem": problem, "source": source, "at": time.time()})

    def standings(self) -> dict[str, Standing]:
        """Problem id -> how far the reader has come, for all that were touched."""
        found: dict[str, dict[str, Any]] = {}
        query = "SELECT problem, code FROM submissions WHERE state = 'done' ORDER BY rowid"
        for row in self.store.rows(query):
            one = found.setdefault(row["problem"], {})
            if row["code"] == "AC":
                one["accepted"] = True
            elif row["code"] not in NOT_COUNTED and not one.get("accepted"):
                one["failures"] = one.get("failures", 0) + 1
        for row in self.store.rows("SELECT problem, COUNT(*) AS n FROM hints GROUP BY problem"):
            found.setdefault(row["problem"], {})["hints"] = row["n"]
        for row in self.store.rows("SELECT problem FROM solutions WHERE spoiled = 1"):
            found.setdefault(row["problem"], {})["spoiled"] = True
        return {problem: Standing(**values) for problem, values in found.items()}

    def standing(self, problem: str) -> Standing:
        """How far the reader has come with this problem."""
        return self.standings().get(problem, Standing())

    def wait(self, problem: str) -> float:
        """Seconds until the next try at a prediction may be judged; 0.0 once the answer is known.

        A try that is not judged yet counts: it may be wrong.
        """
        query = (
            "SELECT at FROM submissions WHERE problem = ? "
            "AND (code = 'WA' OR state IN ('queued', 'running')) ORDER BY rowid"
        )
        tries = self.store.rows(query, problem)
        beyond = len(tries) - FREE_TRIES
        if beyond < 0 or self.standing(problem).knows:
            return 0.0
        wait = min(FIRST_WAIT_S * 2.0 ** min(beyond, 20), LONGEST_WAIT_S)
        passed = time.time() - tries[-1]["at"]
        return max(wait - passed, 0.0) if passed >= 0 else 0.0  # else the clock was set back

    def take_hint(self, problem: str, number: int) -> None:
        """Record that hint `number` (from 1) was shown."""
        self.store.put("hints", {"problem": problem, "number": number, "at": time.time()})

    def show_solution(self, problem: str, *, spoiled: bool) -> None:
        """Record that the solution was shown; a spoiled problem stays spoiled."""
        spoiled = spoiled or self.standing(problem).spoiled
        row = {"problem": problem, "at": time.time(), "spoiled": int(spoiled)}
        self.store.put("solutions", row)

    def steps(self) -> set[int]:
        """The chapters whose tests passed on the reader's own code (`tools/steps.py verify`)."""
        return {row["step"] for row in self.store.rows("SELECT step FROM steps")}


def _is_judged_now(row: Row) -> bool:
    if time.time() - row["at"] > RUNNING_AT_MOST_S:
        return False
    try:
        os.kill(row["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
