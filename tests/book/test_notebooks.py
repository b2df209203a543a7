"""Notebooks: the examples in cells, the same bytes each time, printing what is recorded."""

import json
from pathlib import Path

import psutil
import pytest
from booklet import change, make_booklet, settle

from tools.book import notebooks
from tools.book.errors import BookError
from tools.book.sources import Sources

ROOT = Path(__file__).resolve().parents[2]


def test_two_conversions_are_the_same_and_stored() -> None:
    sources, again = Sources(ROOT), Sources(ROOT)
    for step in sources.book:
        text = notebooks.convert(sources, step)
        assert text == notebooks.convert(again, step)
        assert text == (ROOT / notebooks.path_of(step)).read_text("utf-8")
    assert not notebooks.stale(sources)


def test_cells_hold_the_example_and_nothing_that_was_printed() -> None:
    sources = Sources(ROOT)
    for step in sources.book:
        notebook = json.loads(notebooks.convert(sources, step))
        cells = ["".join(cell["source"]) for cell in notebook["cells"]]
        ids = [cell["id"] for cell in notebook["cells"]]
        assert len(set(ids)) == len(ids) >= 4
        assert all(not cell.get("outputs") for cell in notebook["cells"])
        assert step.title["zh"] in cells[0] and step.title["en"] in cells[0]
        # After title and setup: the example, line for line but for blank ones and its docstring.
        code = [line for cell in cells[2:] for line in cell.split("\n") if line.strip()]
        source = sources.read(step.main).split('"""', 2)[2]
        assert code == [line for line in source.split("\n") if line.strip()]


def test_an_equal_cell_gets_an_id_of_its_own(tmp_path: Path) -> None:
    root = make_booklet(tmp_path)
    change(root, "examples/ch01_box.py", "\n\nshow()\n", "\n\nshow()\n\nshow()\n")
    notebook = json.loads(notebooks.convert(Sources(root), Sources(root).book[1]))
    assert notebook["cells"][-1]["id"] == notebook["cells"][-2]["id"] + "-2"


def test_notebooks_follow_their_examples(tmp_path: Path) -> None:
    root = make_booklet(tmp_path)
    (root / "notebooks/old.ipynb").write_text("{}")
    change(root, "examples/ch02_more.py", "# a box", "# another")
    names = ["notebooks/ch02_more.ipynb", "notebooks/old.ipynb"]
    assert notebooks.stale(Sources(root)) == names == notebooks.write(Sources(root))
    assert not notebooks.stale(Sources(root)) and not (root / "notebooks/old.ipynb").exists()


def kernels() -> list[int]:
    """Process ids of this process's notebook kernels."""
    children = psutil.Process().children(recursive=True)
    return [one.pid for one in children if "ipykernel" in " ".join(one.cmdline())]


@pytest.mark.slow
def test_a_notebook_prints_what_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINISGL_LANG", "en")
    root = make_booklet(tmp_path)
    (root / "tools").symlink_to(ROOT / "tools")
    assert list(notebooks.run(Sources(root), [2])) == ["notebooks/ch02_more.ipynb ✓"]
    change(root, "steps/ch02_more/expected.en.txt", "holds", "has")
    with pytest.raises(BookError, match="prints something else than the record"):
        list(notebooks.run(Sources(root), [2]))
    change(root, "examples/ch02_more.py", "box.put(2)", "box.put(1 / 0)")
    settle(root)
    with pytest.raises(BookError, match=r"ch02_more\.ipynb: ZeroDivisionError"):
        list(notebooks.run(Sources(root), [2]))
    assert not kernels(), "a kernel outlives its notebook"
