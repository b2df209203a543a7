"""What the page learns of the real problems, and what it does not before it is earned."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import BAD, GOOD, ROOT, TOTAL, Live, Reader, write_problem

from practice.judgelib import engine, patches
from practice.judgelib.catalogue import Problem, load_catalogue
from practice.judgelib.sandbox import levels
from practice.judgelib.store import Progress
from practice.judgelib.verdict import Verdict
from practice.web.statement import _html

CATALOGUE = load_catalogue(ROOT)
HERE = [problem for problem in CATALOGUE.problems if engine.has_step(problem)]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MINISGL_LANG", "en")


@pytest.fixture
def reader() -> Iterator[Reader]:
    """A browser at a server of this repository's problems."""
    with Live(ROOT) as live:
        yield live.reader()


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """The same, for those who only read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINISGL_HOME", str(tmp_path_factory.mktemp("home")))
        with Live(ROOT) as live:
            yield live.reader()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Reader]:
    """A browser at a server of the one small problem."""
    write_problem(tmp_path)
    with Live(tmp_path) as live:
        yield live.reader()


def accept(id: str) -> None:
    with Progress() as progress:
        progress.finish(progress.begin(id, b"x", 1), Verdict("AC"))


def test_the_list_is_by_chapter_with_titles_numbers_and_what_is_next(reader: Reader) -> None:
    found = reader.get("/api/problems")
    cards = [card for chapter in found["chapters"] for card in chapter["problems"]]
    assert [card["id"] for card in cards] == [problem.id for problem in HERE]
    assert (found["done"], found["total"]) == (0, len(HERE))
    assert found["next"] == HERE[0].id and {card["state"] for card in cards} == {"new"}
    assert found["broken"] == [] and found["level"] == levels.best()
    for chapter in found["chapters"]:
        step = engine.book_of(ROOT)[chapter["number"]]
        assert chapter["page"] == step.page and chapter["title"] == step.title
    assert found["verified"] == []
    accept(HERE[0].id)
    with Progress() as progress:  # as `steps.py verify` does
        progress.store.put("steps", {"step": 1, "at": "today"})
    found = reader.get("/api/problems")
    assert found["verified"] == [1]
    assert found["done"] == 1 and found["next"] == HERE[1].id
    assert found["chapters"][0]["problems"][0]["state"] == "accepted"


@pytest.mark.parametrize("one", HERE, ids=lambda one: one.id)
def test_every_problem_shows_its_statement_starter_and_step(
    untouched: Reader, one: Problem
) -> None:
    found = untouched.get(f"/api/problems/{one.id}")
    for language in ("zh", "en"):
        html = found["statement"][language]
        assert "<h2>" in html and "<pre><code" in html and "<!--" not in html
        assert "samples --" not in html and "<script" not in html
    assert found["starter"] == engine.starter(one)
    assert found["hints"] == {"taken": 0, "total": 3, "texts": []}
    assert found["solution"] == {"available": False}
    if one.step is None:
        assert found["step"] is None
        return
    lines = found["starter"].split("\n")
    for symbol in found["step"]["symbols"]:
        text = "\n".join(lines[symbol["first"] - 1 : symbol["last"]])
        assert re.search(rf"(def|class) {symbol['name'].rpartition('.')[2]}\b", text)
        assert one.kind == "bug" or "NotImplementedError" in text
    paths = [file["path"] for file in found["step"]["tree"]]
    assert found["step"]["path"] in paths
    assert {file["mark"] for file in found["step"]["tree"]} <= {"", "new", "changed"}


def test_neighbours_are_a_chain(untouched: Reader) -> None:
    id, seen = HERE[0].id, list[str]()
    while id:
        found = untouched.get(f"/api/problems/{id}")
        assert found["previous"] == (seen[-1] if seen else None)
        seen.append(id)
        id = found["next"]
    assert seen == [problem.id for problem in HERE]


def test_a_file_of_the_step_shows_no_solution_that_is_still_asked_for(reader: Reader) -> None:
    def text(number: int, path: str) -> str:
        return str(reader.get(f"/api/step/{number}/file?path={path}")["text"])

    plain = "minisgl/engine/config.py"
    assert text(8, plain) == engine.tree_of(ROOT, 8)[plain]
    problem = next(one for one in HERE if one.id == "ch08-radix-split")
    assert problem.step is not None
    number, path = problem.step.number, problem.step.path
    hidden = text(number, path)
    assert hidden.count("raise NotImplementedError") >= len(problem.step.symbols)
    compile(hidden, path, "exec")
    for one in [problem, *engine.neighbours(problem)]:
        accept(one.id)
    assert text(number, path) == engine.reference(problem)


@pytest.mark.parametrize("one", [one for one in HERE if one.step], ids=lambda one: one.id)
def test_no_later_step_shows_it_either(untouched: Reader, one: Problem) -> None:
    place = engine.place_of(one)
    for step in [step.number for step in engine.book_of(ROOT) if step.number >= place.number]:
        for path, text in engine.tree_of(ROOT, step).items():
            for symbol in patches.functions(text).keys() & set(place.symbols):
                shown = untouched.get(f"/api/step/{step}/file?path={path}")["text"]
                assert "raise NotImplementedError" in patches.function(shown, symbol)


def test_hints_come_one_by_one_and_the_solution_after_an_ac(small: Reader) -> None:
    for count in (1, 2, 3, 3):
        found = small.ask("POST", f"{TOTAL}/hint", {}).json
        assert found["taken"] == len(found["texts"]) == count
    assert small.get(TOTAL)["hints"]["texts"][2] == {"zh": "三", "en": "three"}
    assert small.ask("GET", f"{TOTAL}/solution").status == 403
    assert small.ask("POST", f"{TOTAL}/solution", {}).status == 403
    assert small.ask("POST", f"{TOTAL}/solution", {"spoil": "yes"}).status == 403
    small.verdict(small.post("submit", BAD))
    assert small.ask("GET", f"{TOTAL}/solution").status == 403
    small.verdict(small.post("submit", GOOD))
    assert small.get(TOTAL)["solution"] == {"available": True}
    assert "result = result + number" in small.get(f"{TOTAL}/solution")["text"]
    with Progress() as progress:
        assert not progress.standing("ch01-total").spoiled


def test_a_solution_seen_early_is_recorded(small: Reader) -> None:
    found = small.ask("POST", f"{TOTAL}/solution", {"spoil": True})
    assert found.status == 200 and "def total" in found.json["text"]
    assert small.get(f"{TOTAL}/solution") == found.json
    with Progress() as progress:
        assert progress.standing("ch01-total").spoiled


def test_a_draft_is_kept_shown_and_dropped(small: Reader) -> None:
    assert small.get(TOTAL)["draft"] is None
    text = "# \u2028 \0 \x1b 草稿 😀\r\n"
    assert small.ask("PUT", f"{TOTAL}/draft", {"source": text}).status == 204
    found = small.get(TOTAL)
    assert found["draft"]["source"] == text and found["state"] == "draft"
    assert small.get("/api/problems")["chapters"][0]["problems"][0]["state"] == "draft"
    assert small.ask("DELETE", f"{TOTAL}/draft").status == 204
    assert small.get(TOTAL)["draft"] is None and small.get(TOTAL)["state"] == "new"


def test_the_reader_s_own_file_is_offered(small: Reader, tmp_path: Path) -> None:
    assert small.get(TOTAL)["file"] is None
    path = tmp_path / "workspace" / "practice" / "ch01-total.py"
    path.parent.mkdir(parents=True)
    path.write_text("# mine\n")
    assert small.get(TOTAL)["file"] == "# mine\n"
    path.write_bytes(b"\xff")
    assert small.get(TOTAL)["file"] is None


def test_the_history_is_the_newest_fifty(small: Reader) -> None:
    for number in range(52):
        with Progress() as progress:
            id = progress.begin("ch01-total", f"# {number}".encode(), 1)
            progress.finish(id, Verdict("WA"))
    found = small.get(f"{TOTAL}/history")
    assert len(found) == 50 and found[0]["source"] == "# 51" and found[-1]["source"] == "# 2"


def test_a_machine_without_a_sandbox_serves_its_owner_and_says_so(tmp_path: Path) -> None:
    write_problem(tmp_path)
    with Live(tmp_path, level=0) as live:
        reader = live.reader()
        found = reader.get("/api/problems")
        assert found["level"] == 0 and "no sandbox" in found["notice"]["en"]
        assert "没有沙箱" in found["notice"]["zh"]
        assert reader.verdict(reader.post("submit", GOOD))["verdict"]["code"] == "AC"
        assert reader.verdict(reader.post("submit", BAD))["verdict"]["code"] == "WA"


def test_a_broken_problem_hides_no_other(tmp_path: Path) -> None:
    write_problem(tmp_path)
    (tmp_path / "practice" / "problems" / "ch02-<b>broken").mkdir()
    with Live(tmp_path) as live:
        found = live.reader().get("/api/problems")
    assert found["total"] == 1 and found["broken"] == ["ch02-<b>broken: there is no problem.toml"]


def test_a_statement_becomes_html_without_any_of_its_own() -> None:
    html = _html("a <b>c</b> <script>1</script> [x](javascript:alert(1)) `<i>`\n\n<div>no</div>\n")
    assert "<script" not in html and "<b>" not in html and "<div>" not in html
    assert 'href="javascript' not in html and "<code>&lt;i&gt;</code>" in html
    assert '<span class="math inline">a_1 &lt; b</span>' in _html("so $a_1 < b$ holds")
    assert '<div class="math block">' in _html("$$\nx^2\n$$\n")
    assert "math" not in _html("it costs 5$ or 6$, and `$HOME`")
    assert "<table>" in _html("| a | b |\n|---|---|\n| 1 | 2 |\n")
