"""What the page shows of the problems: the list, one problem, the step's files beside it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from practice.judgelib import engine, patches, workspace
from practice.judgelib.catalogue import Catalogue, Place, Problem
from practice.judgelib.store import Progress, Standing
from practice.judgelib.text import JudgeError, Text
from practice.web.errors import ApiError
from practice.web.statement import statement_html
from tools.steplib import StepError, marks, symbol_source
from tools.store import Row

HISTORY = 50
Json = dict[str, Any]


class Shelf:
    """The problems that can be judged here, in the order and with the numbers of `list`."""

    def __init__(self, root: Path, catalogue: Catalogue) -> None:
        self.root = root
        self.broken = catalogue.broken
        everything = enumerate(catalogue.problems, 1)
        # A problem of a step that is not in this checkout would be an offer of nothing.
        self._here = {one.id: (n, one) for n, one in everything if engine.has_step(one)}

    @property
    def needs_torch(self) -> bool:
        """Whether any problem does."""
        return any(problem.torch for _, problem in self._here.values())

    def find(self, id: str) -> Problem:
        """The problem of this id; ApiError 404."""
        if id not in self._here:
            raise ApiError(404, f"没有题目 {id[:60]!r}", f"there is no problem {id[:60]!r}")
        return self._here[id][1]

    def overview(self, standings: dict[str, Standing], drafts: set[str]) -> Json:
        """Chapters with their cards, what is next, how many are done."""
        chapters: dict[int, Json] = {}
        for _, problem in self._here.values():
            chapter = chapters.setdefault(problem.chapter, self._chapter(problem.chapter))
            chapter["problems"].append(self.card(problem, standings, drafts))
        left = [id for id in self._here if not standings.get(id, Standing()).accepted]
        return {
            "chapters": list(chapters.values()),
            "next": left[0] if left else None,
            "done": len(self._here) - len(left),
            "total": len(self._here),
            "broken": list(self.broken),
        }

    def card(self, problem: Problem, standings: dict[str, Standing], drafts: set[str]) -> Json:
        """What the list says of one problem."""
        standing = standings.get(problem.id, Standing())
        state = "draft" if problem.id in drafts else "new"
        state = "accepted" if standing.accepted else "tried" if standing.failures else state
        return {
            "id": problem.id,
            "number": self._here[problem.id][0],
            "title": problem.title._asdict(),
            "difficulty": problem.difficulty,
            "kind": problem.kind,
            "state": state,
        }

    def detail(self, problem: Problem, standings: dict[str, Standing], draft: Row | None) -> Json:
        """Everything about one problem, but for what is only shown when it is asked for."""
        standing = standings.get(problem.id, Standing())
        starter = engine.starter(problem)
        ids = list(self._here)
        place = ids.index(problem.id)
        return self.card(problem, standings, {problem.id} if draft else set()) | {
            "chapter": problem.chapter,
            "statement": statement_html(problem)._asdict(),
            "starter": starter,
            "draft": {"source": draft["source"], "at": draft["at"]} if draft else None,
            "file": _file(problem),
            "limits": asdict(problem.limits),
            "step": _step(problem, starter),
            "hints": hints(problem, standing.hints),
            "solution": {"available": standing.knows},
            "previous": ids[place - 1] if place else None,
            "next": ids[place + 1] if place + 1 < len(ids) else None,
        }

    def step_file(self, number: int, path: str, standings: dict[str, Standing]) -> str:
        """A file of a step's package, in which nothing is there that an open problem asks for.

        From the problem's step on, whichever file a function of that name lies in: chapters keep
        and move what earlier ones wrote.
        """
        try:
            files = engine.tree_of(self.root, number)
        except StepError:
            raise ApiError(404, f"没有第 {number} 步", f"there is no step {number}") from None
        if path not in files:
            words = f"step {number} has no file {path[:120]!r}"
            raise ApiError(404, f"第 {number} 步没有文件 {path[:120]!r}", words)
        known = patches.functions(files[path])
        asked = [
            symbol
            for _, one in self._here.values()
            if one.step and one.step.number <= number
            if not standings.get(one.id, Standing()).knows
            for symbol in one.step.symbols
            if symbol in known
        ]
        if not asked:
            return files[path]
        place = Place(number, path, tuple(dict.fromkeys(asked)))
        return engine.stubbed(files[path], place, f"step {number}")

    def _chapter(self, number: int) -> Json:
        title, page = Text(f"第 {number} 章", f"Chapter {number}"), None
        try:
            step = engine.book_of(self.root)[number]
            title, page = Text(**step.title), step.page
        except StepError:
            pass
        return {"number": number, "title": title._asdict(), "page": page, "problems": []}


def hints(problem: Problem, taken: int) -> Json:
    """How many hints were taken, of how many, and the texts of those."""
    taken = min(taken, len(problem.hints))
    texts = [text._asdict() for text in problem.hints[:taken]]
    return {"taken": taken, "total": len(problem.hints), "texts": texts}


def take_hint(problem: Problem, progress: Progress) -> Json:
    """One hint more, recorded."""
    taken = progress.standing(problem.id).hints
    if taken < len(problem.hints):
        taken += 1
        progress.take_hint(problem.id, taken)
    return hints(problem, taken)


def solution(problem: Problem, progress: Progress, *, spoil: bool) -> Json:
    """The reference solution, and the record that it was shown; ApiError 403 before an AC."""
    standing = progress.standing(problem.id)
    if not (standing.knows or spoil):
        raise ApiError(403, "通过之后才显示", "shown after an AC")
    progress.show_solution(problem.id, spoiled=not standing.accepted)
    return {"text": engine.shown_solution(problem)}


def history(problem: Problem, progress: Progress) -> list[Json]:
    """The newest submissions, newest first."""
    return [
        {
            "id": row["id"],
            "at": row["at"],
            "state": row["state"],
            "code": row["code"],
            "verdict": json.loads(row["verdict"]) if row["verdict"] else None,
            "source": row["source"],
        }
        for row in progress.history(problem.id, HISTORY)
    ]


def _file(problem: Problem) -> str | None:
    """What the reader has written with an editor of his own."""
    try:
        return workspace.read(problem).decode("utf-8")
    except (JudgeError, UnicodeDecodeError):
        return None


def _step(problem: Problem, starter: str) -> Json | None:
    if not problem.step:
        return None
    place = problem.step
    root = engine.root_of(problem)
    places = [(name, symbol_source(starter, name, place.path)) for name in place.symbols]
    known = engine.tree_of(root, place.number)
    found = marks(engine.book_of(root), place.number)
    return {
        "number": place.number,
        "path": place.path,
        "symbols": [{"name": name, "first": at.first, "last": at.last} for name, at in places],
        "tree": [{"path": path, "mark": mark} for path, mark in found.items() if path in known],
    }
