"""What the check says of pages that are whole by themselves and wrong beside something else."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from booklet import change, make_booklet

from tools.book.__main__ import main
from tools.book.checks import check
from tools.book.errors import BookError
from tools.book.site import build_site, is_current
from tools.book.sources import Sources

ROOT = Path(__file__).resolve().parents[2]
EN = "docs/en/ch02_more.md"


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_LANG", "en")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_booklet(tmp_path)


def lines(root: Path, running: bool = False) -> list[str]:
    return [str(fault) for fault in check(Sources(root), running=running).faults]


def both(root: Path, old: str, new: str) -> None:
    for language in ("zh", "en"):
        change(root, f"docs/{language}/ch02_more.md", old, new)


def test_a_whole_book_has_no_faults(root: Path) -> None:
    found = check(Sources(root))
    assert not found.faults and found.pages == 6
    assert [(one.changed, one.shown) for one in found.coverage] == [(18, 18), (14, 14)]


TURNS = {
    "a directive that moved": (
        "@@output@@",
        "",
        f"{EN}:65: @@test tests/test_ch02_more.py::test_takes@@ here, "
        "docs/zh/ch02_more.md has @@output@@ in its place",
    ),
    "a heading's level": ("### E {#predict}", "## E {#predict}", f"{EN}:25: ## {{#predict}} here"),
    "a heading's id": ("{#goals}", "{#goal}", f"{EN}: section {{#goals}} is missing"),
    "a fold": (
        '??? question "?"',
        "!!! note",
        f"{EN}: 0 folded blocks, docs/zh/ch02_more.md has 1",
    ),
}


@pytest.mark.parametrize("turn", TURNS)
def test_one_language_does_not_move_alone(turn: str, root: Path) -> None:
    old, new, said = TURNS[turn]
    change(root, EN, old, new)
    assert any(line.startswith(said) for line in lines(root)), lines(root)


def test_a_page_without_translation_is_a_fault(root: Path) -> None:
    (root / EN).unlink()
    assert f"{EN}: there is no such page" in lines(root)
    (root / "docs/zh/ch02_more.md").unlink()
    assert f"{EN}: there is no such page" in lines(root)


@pytest.mark.parametrize(
    "shown, said",
    [
        ("@@code minisgl/box.py:Box.take@@", "minisgl/box.py:Box.take is not shown (3 lines)"),
        ("@@code minisgl/box.py:Box.put@@", "minisgl/box.py:Box.put is not shown (1 lines)"),
        ("@@code minisgl/shelf.py@@", "minisgl/shelf.py is not shown (1 lines)"),
        ("@@removed minisgl/box.py:Box.peek@@", "write @@removed minisgl/box.py:Box.peek@@"),
        ("@@removed minisgl/old.py@@", "write @@removed minisgl/old.py@@"),
    ],
)
def test_what_a_chapter_changes_is_shown(shown: str, said: str, root: Path) -> None:
    both(root, shown, "")
    found = lines(root)
    assert len(found) == 2 and all(said in line for line in found), found


def test_a_tenth_may_be_listed_with_a_reason(root: Path) -> None:
    both(root, "@@code minisgl/shelf.py@@", "")
    hidden = '\n[[pages.ch02_more.not_shown]]\npath = "minisgl/{}"\nsymbol = "{}"\n'
    hidden += 'why = {{ zh = "无趣", en = "dull" }}\n'
    settings = (root / "docs/book.toml").read_text("utf-8")
    mark = "level = 2\n"
    (root / "docs/book.toml").write_text(
        settings.replace(mark, mark + hidden.format("shelf.py", "")), "utf-8"
    )
    found = check(Sources(root), running=False)
    assert not found.faults
    assert [(one.changed, one.hidden) for one in found.coverage] == [(18, 0), (14, 1)]
    both(root, "@@code minisgl/box.py:Box.take@@", "")
    more = mark + hidden.format("shelf.py", "") + hidden.format("box.py", "Box.take")
    (root / "docs/book.toml").write_text(settings.replace(mark, more), "utf-8")
    assert all("4 lines are not_shown, more than a tenth" in line for line in lines(root))
    both(root, "@@diff@@", "")
    assert any("a page with not_shown needs @@diff@@" in line for line in lines(root))


def test_a_python_block_runs_or_says_that_it_is_a_sketch(root: Path) -> None:
    both(root, "```python sketch", "```python")
    assert next(line for line in lines(root) if "says `run`" in line).startswith(f"{EN}:51")
    both(root, "```python\nanything", "```python run\nfrom minisgl.box import Box")
    assert not lines(root, running=True)
    both(root, "import Box", "import Bag")
    [first, _] = lines(root, running=True)
    assert "this block fails: ImportError: cannot import name 'Bag'" in first
    both(root, "import Bag", "import Box\nopen('written', 'w').close()")
    assert not lines(root, running=True) and not list(root.rglob("written"))


@pytest.mark.parametrize(
    "text",
    [
        "![x](https://example.org/x.png)",
        '<img alt="x" src="//example.org/x.png">',
        '<script src="https://example.org/x.js"></script>',
        '<link rel="stylesheet" href="https://example.org/x.css">',
    ],
)
def test_no_asset_comes_from_another_site(text: str, root: Path) -> None:
    change(root, "docs/en/index.md", "@@status@@", f"@@status@@\n\n{text}")
    assert lines(root) == [
        "docs/en/index.md:5: an asset from another site: put it into docs/assets"
    ]


def test_sections_come_in_order_and_figures_by_two(root: Path) -> None:
    both(root, "## G {#run}", "## G {#tests-1}")
    both(root, "## I {#tests}", "## I {#run}")
    both(root, '@@figure ch05_recompute alt="', '@@figure ch05_recompute2 alt="')
    found = lines(root)
    assert any("out of order" in line for line in found)
    both(root, "@@figure", "figure")
    assert any("1 figures, at least 2" in line for line in lines(root))


def test_code_comes_in_bites_except_in_folded_edits(root: Path) -> None:
    first = "@@code minisgl/box.py:Box.first@@"
    both(root, f"\nand\n{first}", f"\n\n{first}")
    assert any("3 blocks of code in a row" in line for line in lines(root))
    both(root, first, f"{first}\n</details>")
    both(root, "@@code minisgl/box.py:Box.take@@", "<details>\n@@code minisgl/box.py:Box.take@@")
    assert not lines(root)


def test_a_page_has_one_title(root: Path) -> None:
    change(root, EN, "## A", "# A")
    assert f"{EN}:1: a page has one heading of level 1, its first" in lines(root)


def test_stale_notebooks_are_named(root: Path) -> None:
    change(root, "examples/ch02_more.py", "# a box", "# another box")
    assert any(line.startswith("notebooks/ch02_more.ipynb: stale") for line in lines(root))


SETTINGS = [
    ("level = 2", "level = 4", "`level` 1, 2 or 3"),
    ("minutes = 45\n", "", "`minutes` is missing"),
    ("[columns]", "[colums]", "unknown key `colums`"),
    ('size = { zh = "大小", en = "size" }', "size = 1", "[columns.size]: must be a table"),
    ("[pages.ch02_more]", "[pages.ch02]", "[pages.ch02] is not a chapter's page"),
    ("[columns]", "[columns", "docs/book.toml: "),
    ("[pages.ch02_more]", "[[pages.ch02_more]]", "[pages.ch02_more]: must be a table"),
    (
        "[[parts]]\nnumber = 1",
        "[[parts]]",
        "[parts]: `number` is an integer, once, here it is None",
    ),
    ("chapter = 3", "chapter = 2", "[road]: `chapter` is an integer, once, here it is 2"),
    ("level = 2", "level = 2\nnot_shown = 3", "[pages.ch02_more.not_shown]: must be [["),
]


@pytest.mark.parametrize("old, new, said", SETTINGS)
def test_settings_are_checked(old: str, new: str, said: str, root: Path) -> None:
    change(root, "docs/book.toml", old, new)
    assert any(line.startswith("docs/book.toml") and said in line for line in lines(root))


def test_lines_that_are_listed_exist(root: Path) -> None:
    hidden = 'level = 2\n[[pages.ch02_more.not_shown]]\npath = "{}"\nsymbol = "Box.none"\n'
    hidden += 'why = {{ zh = "无趣", en = "dull" }}'
    for path, said in (("minisgl/none.py", "this step has no"), ("minisgl/box.py", "no Box.none")):
        change(root, "docs/book.toml", "level = 2", hidden.format(path))
        found = [line for line in lines(root) if line.startswith(f"{EN}:77: docs/book.toml [pages")]
        assert len(found) == 1 and said in found[0], lines(root)
        change(root, "docs/book.toml", hidden.format(path), "level = 2")


def damage(path: str, content: bytes) -> Callable[[Path], object]:
    return lambda root: (root / path).write_bytes(content)


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a page in another encoding": (damage(EN, b"# \n\n\xff"), f"{EN}:3: save it as UTF-8"),
    "a page that is a folder": (lambda root: (root / "docs/en/a.md").mkdir(), "docs/en/a.md: Is a"),
    "a page that leads nowhere": (
        lambda root: (root / "docs/en/a.md").symlink_to("none"),
        "docs/en/a.md: there is no such file",
    ),
    "a package's file in another encoding": (
        damage("minisgl/shelf.py", b"X = '\xff'"),
        "minisgl/shelf.py: not UTF-8",
    ),
    "a benchmark that does not parse": (damage("bench/ch02_speed.py", b"("), "ch02_speed.py:1: "),
    "tests that do not parse": (damage("tests/test_ch02_more.py", b"("), "test_ch02_more.py:1: "),
    "an empty example": (damage("examples/ch02_more.py", b""), "ch02_more.md:57: "),
    "no output": (
        lambda root: (root / "steps/ch02_more/expected.en.txt").unlink(),
        "ch02 has no recorded output: run python3 tools/steps.py record 2",
    ),
    "records of another form": (damage("docs/records.json", b"[]"), "record 2"),
    "a project file that does not parse": (damage("pyproject.toml", b"["), "pyproject.toml: "),
    "a fence without end": (
        lambda root: change(root, EN, "```\nand\n## G", "\nand\n## G"),
        f"{EN}:51: this fence does not end",
    ),
    "a heading that is underlined": (
        lambda root: change(root, EN, "## G", "G\n---\n\n## G"),
        f"{EN}:56: write headings with #",
    ),
    "a page in a folder": (
        lambda root: shutil.copytree(root / "docs/en", root / "docs/en/a"),
        "docs/zh/a/ch02_more.md: there is no such page",
    ),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damage_is_a_line_that_names_the_file(
    what: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    break_, said = DAMAGED[what]
    break_(root)
    assert main(["check"], root) == 1
    printed = capsys.readouterr()
    assert said in printed.out + printed.err


def test_marks_and_line_ends_of_other_systems_do_not_count(root: Path) -> None:
    for language in ("zh", "en"):
        path = root / f"docs/{language}/ch02_more.md"
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert not lines(root)


def test_a_book_that_does_not_build_leaves_the_one_that_is_there(root: Path) -> None:
    (root / "site").mkdir()
    (root / "site/index.html").write_text("old")
    before = sorted(root.iterdir())
    with pytest.raises(BookError, match=r"does not build:\n.*mkdocs\.yml"):
        build_site(root)
    assert sorted(root.iterdir()) == before and (root / "site/index.html").read_text() == "old"


def test_a_site_is_current_until_something_changes_or_goes(root: Path) -> None:
    assert not is_current(root)
    (root / "site").mkdir()
    (root / "site/index.html").write_text("")
    later = (root / "site/index.html").stat().st_mtime + 10
    os.utime(root / "site/index.html", (later, later))
    assert is_current(root)
    (root / EN).unlink()
    os.utime((root / EN).parent, (later + 10, later + 10))
    assert not is_current(root)


def test_the_command_prints_a_line_per_fault_and_fails(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--coverage"], root) == 0
    assert "ch02        14     14" in capsys.readouterr().out
    both(root, "@@output@@", "@@output 9@@")
    assert main(["check", EN], root) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "✗ 2 to put right"
    assert printed[0].startswith(f"✗ {EN}:59: the output of ch02 has 1 lines")
    assert main(["expand", "ch02_more", "-l", "en"], root) == 1
    assert main(["expand", "none"], root) == 1


def test_the_generator_does_not_import_torch() -> None:
    code = "import tools.book.__main__, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
