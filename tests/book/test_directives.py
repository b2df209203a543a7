"""What each directive puts on a page, and the one line that it says where it cannot."""

from pathlib import Path

import pytest
from booklet import change, make_booklet, page, settle

from tools.book.expand import DIRECTIVES, expand
from tools.book.pages import Page
from tools.book.sources import Sources


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_LANG", "en")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_booklet(tmp_path)


def expanded(root: Path, text: str, name: str = "ch02_more", language: str = "en") -> str:
    """What a page with this text becomes; it must be without faults."""
    found = expand(Sources(root), Page(language, name, text))
    assert not found.faults, [str(fault) for fault in found.faults]
    return found.markdown


def faults(root: Path, text: str, name: str = "ch02_more") -> list[str]:
    return [str(fault) for fault in expand(Sources(root), Page("en", name, text)).faults]


GOOD = {
    "@@facts@@": ["about 45 minutes", "1 new · 1 changed · 1 removed", "examples/ch02_more.py"],
    "@@tree@@": ["box.py  ← changed", "old.py  ← removed", 'hl_lines="3-5"'],
    "@@code minisgl/box.py:Box.put@@": ["replaces Box.put", 'hl_lines="2"', "at the end."],
    "@@code minisgl/box.py:Box.take@@": ["new: Box.take, after Box.put", "# the oldest first"],
    "@@code minisgl/box.py:width@@": ["new: width, after Box"],
    "@@code minisgl/box.py:room@@": ["room, unchanged", "# How many there may be."],
    "@@code minisgl/box.py:WIDTH@@": ["new: WIDTH, on the line below LIMIT"],
    "@@code minisgl/box.py:@head@@": ["replaces the top of the file", "import itertools"],
    "@@code minisgl/box.py:Box.@head@@": ["replaces the top of Box", "count = "],
    "@@code minisgl/box.py@@": ["minisgl/box.py · the whole file", "hl_lines"],
    "@@code minisgl/shelf.py:SHELF@@": ["a new file, beginning with SHELF"],
    "@@code minisgl/old.py ch=1@@": ["minisgl/old.py · ch01", "OLD = 1"],
    "@@code minisgl/box.py:Box.peek ch=1@@": ["minisgl/box.py · Box.peek · ch01"],
    "@@removed minisgl/old.py@@": ['!!! delete "minisgl/old.py · delete the file"'],
    "@@removed minisgl/box.py:Box.peek@@": ["delete Box.peek"],
    "@@main@@": ["examples/ch02_more.py", "box.put(2)"],
    "@@main show@@": ["def show", 'print("holds", box._things'],
    "@@output@@": ["python examples/ch02_more.py", "holds [2] ≈0.5"],
    "@@table ch02_speed@@": ["| size | ms |", "| 2 | 7.8 |", "2026-01-01", "abacus, 1 cores"],
    "@@table ch02_speed columns=ms where=size=1@@": ["| ms |", "| 1.2 |"],
    '@@figure ch05_rows alt="rows & places"@@': ['aria-label="rows &amp; places"', "<svg"],
    "@@problems@@": ['data-problem="ch02-rope"', "practice/judge.py show ch02-rope"],
    "@@test tests/test_ch02_more.py::test_takes@@": ["# the oldest", "::test_takes"],
    "@@diff@@": ['href="../../changes/ch02_more.html"'],
    "@@roadmap@@": ["[02 More](ch02_more.md)", "03 More (to come)", "**Part 1**"],
    "@@status@@": ["[01 Boxes](ch01_box.md) | 1 |", "ch02_speed"],
}


@pytest.mark.parametrize("text", GOOD)
def test_a_directive_gives_what_the_repository_says(text: str, root: Path) -> None:
    found = expanded(root, text)
    for part in GOOD[text]:
        assert part in found, found


def test_what_the_reader_writes_is_folded_and_what_the_workspace_has_is_not(root: Path) -> None:
    fold = '<details class="write"'
    for symbol in ("", ":Box", ":Box.take", ":width"):
        assert fold in expanded(root, f"@@code minisgl/box.py{symbol}@@")
    for symbol in (":@head", ":Box.@head", ":Box.put", ":WIDTH", ":room", ":Box.peek ch=1"):
        assert fold not in expanded(root, f"@@code minisgl/box.py{symbol}@@")
    change(root, "minisgl/box.py", "self._things.append(thing)", "self._things += [thing]")
    before = "`python3 tools/steps.py show 1 minisgl/box.py:Box.put`"
    assert before in expanded(root, "@@code minisgl/box.py:Box.put@@")
    # What the page folds itself is not folded twice.
    text = '<details class="note" markdown="1">\n@@code minisgl/box.py:Box.take@@\n</details>'
    assert fold not in expanded(root, text)
    assert fold in expanded(root, f"{text}\n@@code minisgl/box.py:Box.take@@")


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_steps_begin_with_where_the_readers_code_runs(root: Path, language: str) -> None:
    found = expanded(root, "## Steps {#steps}", language=language)
    for part in ("steps.py start 2", "steps.py run 2", "steps.py verify 2", "cd workspace/ch02_"):
        assert part in found
    assert "steps.py" not in expanded(root, "## Steps {#steps}", "index", language)


BAD = {
    "@@facts now@@": "wrong arguments",
    "@@tree x@@": "wrong arguments",
    "@@code minisgl/none.py@@": "this step has no minisgl/none.py, is it minisgl/box.py?",
    "@@code minisgl/old.py@@": "write @@removed minisgl/old.py@@",
    "@@code minisgl/box.py:Box.none@@": "has no Box.none; it has @head, Box,",
    "@@code minisgl/box.py:Box ch=9@@": "there is no chapter ch09",
    "@@code minisgl/box.py:Box ch=x@@": "not the number of a chapter",
    "@@code minisgl/shelf.py:SHELF ch=1@@": "this step has no minisgl/shelf.py, is it minisgl/",
    "@@removed minisgl/box.py@@": "does not take minisgl/box.py away",
    "@@removed minisgl/box.py:Box.none@@": "the step before has no minisgl/box.py:Box.none",
    "@@main none@@": "has no none",
    "@@output 1-2@@": "the output of ch02 has 1 lines",
    "@@output one@@": "write @@output A-B@@",
    "@@table none@@": "no record bench/none.json; there are ch02_speed",
    "@@table ch02_speed columns=none@@": "no column 'none'; it has size, ms",
    "@@table ch02_speed where=size=9@@": "no row with size=9",
    "@@figure ch05_rows@@": "write alt=",
    '@@figure none alt="x"@@': "there is no figure none",
    '@@figure ch05_rows alt="x@@': "quotes do not match",
    "@@problems 1@@": "wrong arguments",
    "@@test tests/test_ch02_more.py::none@@": "has no none",
    "@@test tests/none.py::test@@": "tests/none.py: there is no such file",
    "@@test minisgl/box.py@@": "write @@test tests/FILE.py::name@@",
    "@@diff x@@": "wrong arguments",
    "@@roadmap x@@": "wrong arguments",
    "@@status x@@": "wrong arguments",
    "@@none@@": "no directive 'none'",
    "@@ @@": "no directive ''",
    "  @@tree@@": "begins in the first column",
    "@@tree@@ and more": "stands on a line of its own",
    "- @@tree@@": "stands on a line of its own",
    "@@code minisgl/box.py:Box": "stands on a line of its own",
    "<!-- @@tree@@ -->": "stands on a line of its own",
    "a <!-- b -->": "a page has no comments",
    "{{ ch02_speed[0].ms }": "must end with }} on the same line",
    "{{ ch02_speed[size=2].none }}": "no column 'none'",
    "{{ ch02_speed[size=9].ms }}": "no row with size=9",
    "{{ ch02_speed[].ms }}": "matches 2 rows, must be one",
    "{{ ch02_speed[7].ms }}": "has 2 rows only",
    "{{ ch02_speed[0].ms | q }}": "format 'q' does not fit",
    "{{ ms }}": "cannot read {{ ms }}",
    "{{ output[ch02] 2: (.*) }}": "the output of ch02 has 1 lines",
    "{{ output[ch02] 1: (no) }}": "has no first group",
    "{{ output[ch02] 1: ( }}": "pattern",
    "[a](code:minisgl/box.py:none)": "minisgl/box.py has no none",
    "[a](code:minisgl/none.py)": "minisgl/none.py: there is no such file",
    "[a](code:/etc/hostname)": "/etc/hostname: lies outside the repository",
    "[a](problem:ch02-rop)": "the nearest is ch02-rope",
}


@pytest.mark.parametrize("text", BAD)
def test_what_cannot_be_given_is_one_line_with_file_and_line(text: str, root: Path) -> None:
    [line] = faults(root, f"# Title\n\n{text}")
    assert line.startswith("docs/en/ch02_more.md:3: ") and "\n" not in line
    assert BAD[text] in line


def test_every_directive_has_a_test_in_which_it_fails() -> None:
    assert {text.strip("@ ").partition(" ")[0] for text in BAD if text.startswith("@@")} >= set(
        DIRECTIVES
    )


@pytest.mark.parametrize(
    "text", ["@@facts@@", "@@tree@@", "@@code minisgl/box.py@@", "@@output@@", "@@problems@@"]
)
def test_a_page_of_no_chapter_has_no_chapters_facts(text: str, root: Path) -> None:
    [line] = faults(root, text, "index")
    assert "this page belongs to no chapter" in line


def test_settings_that_are_missing_are_named(root: Path) -> None:
    change(root, "docs/book.toml", "[pages.ch02_more]", "[pages.ch09]")
    assert "has no [pages.ch02_more]" in faults(root, "@@facts@@")[0]
    change(root, "docs/book.toml", "chapter = 2", "chapter = 4")
    assert "no [[road]] of chapter 2" in faults(root, "@@roadmap@@")[0]


def test_an_output_is_stale_when_its_sources_change_and_not_when_a_comment_does(
    root: Path,
) -> None:
    change(root, "minisgl/box.py", "# the oldest first", "# first the oldest")
    assert not faults(root, "@@output@@")
    change(root, "minisgl/box.py", "self._things.pop(0)", "self._things.pop(1)")
    [line] = faults(root, "@@output@@")
    assert "-m tools.book record 2" in line
    settle(root)
    assert not faults(root, "@@output@@")


def test_a_record_is_stale_when_its_script_changes(root: Path) -> None:
    change(root, "bench/ch02_speed.py", "measured", "guessed")
    for text in ("@@table ch02_speed@@", "{{ ch02_speed[0].ms }}"):
        assert "run python3 bench/ch02_speed.py --record" in faults(root, text)[0]


@pytest.mark.parametrize(
    "old, new",
    [
        ('"rows": [{"size": 1, "ms": 1.25}, ', '"rows": [{"size": 1}, '),
        ('"rows"', '"lines"'),
        ("7.75", "NaN"),
        ("7.75", "1e999"),
        ("7.75", "[7]"),
        ('"script"', '"program"'),
        ("{", ""),
    ],
)
def test_a_damaged_record_is_named(old: str, new: str, root: Path) -> None:
    change(root, "bench/ch02_speed.json", old, new)
    for text in ("@@table ch02_speed@@", "{{ ch02_speed[0].ms }}"):
        [line] = faults(root, text)
        assert "bench/ch02_speed.json is damaged: python3 bench/check.py says where" in line


def test_a_broken_problem_stops_the_cards(root: Path) -> None:
    change(root, "practice/problems/ch02-rope/problem.toml", 'kind = "call"', 'kind = "riddle"')
    assert "practice/problems: ch02-rope" in faults(root, "@@problems@@")[0]


def test_values_are_written_as_recorded_or_in_a_format(root: Path) -> None:
    text = "{{ ch02_speed[size=2].ms }} {{ ch02_speed[-1].ms | .1f }} {{ output[ch02] 1: .(\\d). }}"
    assert expanded(root, text) == "7.75 7.8 2"
    assert expanded(root, "{{ output[ch02] 1: (.+) \\[ }}", language="zh") == "里面有"


def test_a_digit_of_a_record_changes_the_page(root: Path) -> None:
    texts = ["@@table ch02_speed@@", "{{ ch02_speed[1].ms }}", "@@status@@"]
    before = [expanded(root, text) for text in texts]
    change(root, "bench/ch02_speed.json", "7.75", "7.65")
    assert all(expanded(root, text) != old for text, old in zip(texts, before, strict=True))


def test_inline_code_is_left_alone(root: Path) -> None:
    text = "`{{ none }}`, ``a ` @@none@@`` and `[a](code:none.py)`"
    assert expanded(root, text) == text
    linked = expanded(root, "`{{ none }}` [`room`](code:minisgl/box.py:room)")
    assert linked.startswith("`{{ none }}` [`room`](https://example.org/booklet/blob/main/")


def test_fences_are_left_alone(root: Path) -> None:
    text = "```text\n@@none@@\n{{ none }}\n```\n\n    ```text\n    @@none@@\n    ```"
    assert expanded(root, text) == text


def test_what_a_block_is_for_is_not_handed_on(root: Path) -> None:
    text = "```python{}\npass\n```\n\n    ~~~python{}\n    pass\n    ~~~"
    assert expanded(root, text.format(" run", " sketch")) == text.format("", "")


def test_code_with_fences_in_it_gets_longer_ones(root: Path) -> None:
    change(root, "minisgl/shelf.py", "SHELF = []", 'SHELF = """\n```\n"""')
    assert expanded(root, "@@code minisgl/shelf.py@@").strip().startswith("````python")


def test_a_new_place_is_told_by_what_the_reader_has_already(root: Path) -> None:
    shown = expanded(root, page(root).text)
    # Box.take is shown before Box.first, which stands above it in the file.
    assert shown.index("new: Box.take, after Box.put") < shown.index(
        "new: Box.first, after Box.put"
    )
    assert "new: WIDTH, on the line below LIMIT" in shown


def test_a_member_needs_its_class(root: Path) -> None:
    change(root, "minisgl/shelf.py", "SHELF = []", "class A:\n    x = 1\n\n    def f(self): ...")
    start = "@@code minisgl/shelf.py:A.@head@@"
    assert not faults(root, f"{start}\n@@code minisgl/shelf.py:A.f@@")
    change(root, "minisgl/shelf.py", "class A", "SHELF = []\n\n\nclass A")
    [line] = faults(root, "@@code minisgl/shelf.py:@head@@\n@@code minisgl/shelf.py:A.f@@")
    assert f"show {start} first" in line
