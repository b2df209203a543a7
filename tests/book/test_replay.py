"""The reader's part: what a page shows, typed on top of the step before, gives the step."""

import contextlib
import re
from pathlib import Path

import pytest
from booklet import make_booklet, page

from tools.book.expand import expand
from tools.book.orders import ReplayError
from tools.book.replay import Outcome, replay
from tools.book.replaying import replay_pages
from tools.book.sources import Sources

ROOT = Path(__file__).resolve().parents[2]
PAGES = [step.page for step in Sources(ROOT).book]


@pytest.mark.parametrize("name", PAGES)
def test_typing_a_page_gives_the_steps_package_byte_for_byte(name: str) -> None:
    found = list(replay_pages(Sources(ROOT), [name]))
    assert [one.language for one, _ in found] == ["zh", "en"]
    for one, outcome in found:
        assert not outcome.differences, f"{one.path}\n" + "\n".join(outcome.differences.values())
        assert outcome.lines > 50 and outcome.copied <= 0.1 * outcome.lines


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(make_booklet(tmp_path))


def typed(sources: Sources, markdown: str) -> Outcome:
    return replay(markdown, sources.before(sources.book[2]), sources.package(2))


def markdown(sources: Sources, language: str = "en") -> str:
    return expand(sources, page(sources.root, language)).markdown


@pytest.mark.parametrize("language", ["zh", "en"])
def test_code_told_out_of_order_lands_in_its_place(sources: Sources, language: str) -> None:
    text = markdown(sources, language)
    acts = {
        "zh": "放在 Box.put 之后|下一行|替换 LIMIT|替换文件开头|删除 Box.peek|删除整个文件"
        "|整个文件",
        "en": "after Box.put|line below|replaces LIMIT|replaces the top of the file|delete Box.peek"
        "|delete the file|the whole file",
    }
    for act in acts[language].split("|"):
        assert act in text
    assert not typed(sources, text).differences


@pytest.mark.parametrize(
    "old, new",
    [
        ("new: width, after Box", "new: width, after room"),
        ("new: Box.first, after Box.put", "new: Box.first, after Box.take"),
        ("delete Box.peek", "delete room"),
        ("return WIDTH * len", "return WIDTH + len"),
        ("    # the oldest first\n", ""),
    ],
)
def test_a_title_or_a_line_that_misleads_shows(old: str, new: str, sources: Sources) -> None:
    text = markdown(sources)
    assert old in text
    assert list(typed(sources, text.replace(old, new)).differences) == ["minisgl/box.py"]


def test_every_block_counts(sources: Sources) -> None:
    text = markdown(sources)
    blocks = re.findall(r"^```python title=\"minisgl/.*?^```$", text, re.M | re.S)
    blocks += re.findall(r"^!!! delete .*$", text, re.M)
    assert len(blocks) == 11
    # The top of the file comes after, and holds both of them.
    needless = ("replaces LIMIT", "new: WIDTH")
    for block in blocks:
        if not any(title in block for title in needless):
            # Either the files differ, or a later block builds on what is not there.
            with contextlib.suppress(ReplayError):
                assert typed(sources, text.replace(block, "")).differences


@pytest.mark.parametrize(
    "title, said",
    [
        ("minisgl/box.py · somewhere", "cannot tell what to do"),
        ("minisgl/box.py · replaces nobody", "has no nobody"),
        ("minisgl/none.py · replaces Box", "is not there"),
        ("minisgl/box.py · a new file, beginning with Box", "is there already"),
    ],
)
def test_a_block_that_cannot_be_followed_stops(title: str, said: str, sources: Sources) -> None:
    with pytest.raises(ReplayError, match=said):
        typed(sources, f'```python title="{title}"\nx = 1\n```')


def test_lines_that_are_listed_are_taken_over_and_counted(sources: Sources) -> None:
    text = markdown(sources)
    block = re.search(
        r"^```python title=\"minisgl/box.py · new: Box.take.*?^```$", text, re.M | re.S
    )
    assert block
    listed = [("minisgl/box.py", "Box.take")]
    before, after = sources.before(sources.book[2]), sources.package(2)
    outcome = replay(text.replace(block[0], ""), before, after, listed)
    assert not outcome.differences and outcome.copied == 3


def test_an_empty_file_is_typed_as_one() -> None:
    block = '```text title="minisgl/py.typed · the whole file"\n\n```'
    assert not replay(block, {}, {"minisgl/py.typed": ""}).differences
