"""What stands on a page follows from the repository: move a line or a digit there, and it shows."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.book.errors import BookError
from tools.book.expand import expand
from tools.book.pages import Page, load_pages
from tools.book.site import build_site
from tools.book.sources import Sources

ROOT = Path(__file__).resolve().parents[2]
BENCHES = sorted(path.stem for path in (ROOT / "bench").glob("*.json"))
PARTS = ("docs", "steps", "minisgl", "examples", "bench", "practice/problems", "pyproject.toml")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name)
        else:
            shutil.copy(ROOT / name, root / name)
    shutil.copytree(ROOT / "tests", root / "tests", ignore=shutil.ignore_patterns("*pycache*"))
    return root


def book(root: Path, wanted: Callable[[Page], bool]) -> dict[str, str]:
    """Page -> Markdown, with its faults, of the pages that are wanted."""
    sources = Sources(root)
    done = [expand(sources, page) for page in load_pages(root) if wanted(page)]
    return {one.context.page.path: "\n".join([one.markdown, *map(str, one.faults)]) for one in done}


@pytest.mark.parametrize("key", BENCHES)
def test_a_digit_of_a_record_moves_the_book(key: str, copy: Path) -> None:
    path = copy / "bench" / f"{key}.json"
    kept = path.read_text("utf-8")

    def uses(page: Page) -> bool:
        return key in page.text

    def moves(number: int, column: str) -> bool:
        document = json.loads(kept)
        document["rows"][number][column] += 1.0
        path.write_text(json.dumps(document), "utf-8")
        return book(copy, uses) != before

    before = book(copy, uses)
    assert before, f"no page uses bench/{key}.json"
    figures = [
        (number, column)
        for number, row in enumerate(json.loads(kept)["rows"])
        for column, figure in row.items()
        if isinstance(figure, int | float)
    ]
    try:
        assert any(moves(*figure) for figure in figures), f"no page shows bench/{key}.json"
    finally:
        path.write_text(kept, "utf-8")


CHAPTERS = sorted(path.name for path in (ROOT / "steps").iterdir() if any(path.rglob("*.py")))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_line_under_steps_moves_the_book(chapter: str, copy: Path) -> None:
    def of_chapter(page: Page) -> bool:
        return page.name == chapter

    before = book(copy, of_chapter)
    kept = {path: path.read_text("utf-8") for path in (copy / "steps" / chapter).rglob("*.py")}
    for path, text in kept.items():
        lines = text.split("\n")
        solid = [number for number, line in enumerate(lines) if line.strip()]
        lines[solid[len(solid) // 2]] += "  # moved"
        path.write_text("\n".join(lines), "utf-8")
    after = book(copy, of_chapter)
    for path, text in kept.items():
        path.write_text(text, "utf-8")
    assert len(before) == 2
    assert all(after[page] != before[page] for page in before)


def test_links_that_lead_nowhere_stop_the_build(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    page, links = tmp_path / "docs/zh/glossary.md", ("overview.md#nowhere", "nothing.md")
    page.write_text(
        "\n".join([page.read_text("utf-8"), *(f"[x]({link})" for link in links)]), "utf-8"
    )
    with pytest.raises(BookError) as error:
        build_site(tmp_path)
    assert all(link in str(error.value) for link in links)
    assert not (tmp_path / "site").exists()


def test_run_it_runs_the_readers_own_code() -> None:
    sources = Sources(ROOT)
    chapters = {page: step for page in load_pages(ROOT) if (step := sources.step_of(page.name))}
    assert chapters
    for page, step in chapters.items():
        first = page.text.partition("{#run}")[2].partition("@@output")[0]
        assert f"\npython3 tools/steps.py run {step.number}\n" in first, page.path
