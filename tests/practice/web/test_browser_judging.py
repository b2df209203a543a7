"""In a real browser, on real problems: type, run, submit, and see what the judge says."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from serving import ROOT, Child

from practice.judgelib import engine
from practice.judgelib.catalogue import load_problem

if TYPE_CHECKING:
    from browsing import Tab

Opens: TypeAlias = "Callable[..., Tab]"
PREFIX_SET = "/p/ch08-prefix-set"
SPLIT = "/p/ch08-radix-split"
# What a page would run if any of it were taken for markup.
HOSTILE = "<img src=x onerror=alert(1)></pre></script><script>alert(2)</script>"
EMPTY = """\
class PrefixSet:
    def __init__(self, page_size):
        self.page_size = page_size

    def insert(self, ids):
        return 0

    def match(self, ids):
        return 0

    def forget(self, ids):
        return 0

    def num_pages(self):
        return 0
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINISGL_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("OMP_NUM_THREADS", "1")
        with Child(ROOT, ahead=False) as child:
            yield child.address


def solution(id: str) -> str:
    return engine.solution(load_problem(Path(ROOT, "practice", "problems", id)))


def test_typed_run_and_submitted_until_it_is_accepted(address: str, opens: Opens) -> None:
    tab = opens(address, PREFIX_SET)
    page = tab.page
    tab.write("")
    # Key by key: the editor indents and closes brackets by itself.
    page.keyboard.type("class PrefixSet:\ndef __init__(self, page_size):\npass\n")
    assert (
        tab.code() == "class PrefixSet:\n    def __init__(self, page_size):\n        pass\n        "
    )
    tab.write(solution("ch08-prefix-set"))
    page.keyboard.press("Control+'")
    assert tab.verdict() == "AC"
    assert page.inner_text(".verdict h3") == "The samples pass. Ready to submit."
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".verdict .measured:has-text('submission')", timeout=40_000)
    assert tab.verdict() == "AC"
    assert page.inner_text("#live") == "AC accepted"
    page.get_by_role("tab", name="History").click()
    page.locator(".history li").first.wait_for()
    assert page.locator(".history li").count() == 1
    page.get_by_role("tab", name="Solution").click()
    page.get_by_role("button", name="Show the reference solution").click()
    page.wait_for_selector("#panel-solution .cm-line:has-text('class PrefixSet')")
    tab.open()
    assert page.locator('.card[href="/p/ch08-prefix-set"] .state.accepted').count() == 1
    assert "1 of" in page.inner_text(".count")


def test_a_wrong_answer_shows_the_sample_and_an_earlier_one_can_be_opened_again(
    address: str, opens: Opens
) -> None:
    tab = opens(address, PREFIX_SET)
    page = tab.page
    tab.write(EMPTY)
    page.get_by_role("button", name="Submit").click()
    assert tab.verdict() == "WA"
    assert tab.row("Group") == "sample: two texts that share their first page"
    assert "['new', 2]" in tab.row("Input")
    assert tab.row("First wrong") and tab.row("Expected") and tab.row("Got")
    assert "WA wrong answer, sample" in page.inner_text("#live")
    tab.write("# something else\n")
    page.get_by_role("tab", name="History").click()
    page.get_by_role("button", name="Open in the editor").first.click()
    assert tab.code().startswith(
        "class PrefixSet:\n    def __init__(self, page_size):\n        self"
    )
    page.keyboard.press("Control+z")
    assert tab.code() == "# something else\n"


def test_what_a_program_prints_is_text(address: str, opens: Opens) -> None:
    tab = opens(address, PREFIX_SET)
    tab.write(EMPTY.replace("return 0", f"print({HOSTILE!r}); return {HOSTILE!r}", 1))
    tab.page.keyboard.press("Control+Enter")
    assert tab.verdict() == "WA"
    assert HOSTILE in tab.row("Your output") and HOSTILE in tab.row("Got")
    tab.write(EMPTY.replace("return 0", f"raise ValueError({HOSTILE!r})", 1))
    tab.page.keyboard.press("Control+Enter")
    tab.page.wait_for_selector(".badge:has-text('RE')")
    assert HOSTILE in tab.row("Reason") and HOSTILE in tab.row("Traceback")
    assert tab.page.locator("#panel-result img, #panel-result script").count() == 0


def test_a_line_that_cannot_be_compiled_can_be_gone_to(address: str, opens: Opens) -> None:
    tab = opens(address, PREFIX_SET)
    tab.write(EMPTY + "\n\nif True\n    pass\n")
    tab.page.keyboard.press("Shift+Control+Enter")
    assert tab.verdict() == "CE"
    tab.page.get_by_role("button", name="Go to line 18").click()
    assert tab.page.locator(".editor .cm-activeLine").inner_text() == "if True"


def test_engine_code_is_marked_and_the_steps_files_are_beside_it(
    address: str, opens: Opens
) -> None:
    tab = opens(address, SPLIT, viewport={"width": 1500, "height": 900})
    page = tab.page
    marked = page.locator(".editor .cm-line.cm-yours")
    assert "def match" in marked.first.inner_text()  # scrolled to what is to be written
    page.get_by_role("button", name="_split").click()
    assert "def _split" in page.locator(".editor .cm-activeLine.cm-yours").inner_text()
    # The marks follow the functions, not the lines of the starter.
    page.keyboard.press("Control+Home")
    page.keyboard.insert_text("# one line more\n" * 3)
    page.get_by_role("button", name="_split").click()
    assert "def _split" in page.locator(".editor .cm-activeLine.cm-yours").inner_text()
    page.locator(".tree button", has_text="core.py").click()
    viewer = page.locator(".viewer .cm-content")
    viewer.wait_for()
    shown = viewer.inner_text()
    assert shown.startswith(engine.tree_of(ROOT, 8)["minisgl/core.py"][:40])
    page.keyboard.type("x")
    assert viewer.inner_text() == shown
    page.get_by_role("button", name="Back to your file").click()
    tab.write(solution("ch08-radix-split"))
    page.keyboard.press("Control+Enter")
    assert tab.verdict() == "AC"


def test_hints_come_one_at_a_time_and_an_early_solution_asks_first(
    address: str, opens: Opens
) -> None:
    tab = opens(address, "/p/ch02-attention")
    page = tab.page
    page.get_by_role("tab", name="Hints").click()
    page.get_by_role("button", name="Show hint 1 of 3").click()
    page.get_by_role("button", name="Show hint 2 of 3").wait_for()
    assert page.locator(".hints li").count() == 1
    page.keyboard.press("Enter")  # the focus went to the next button
    page.get_by_role("button", name="Show hint 3 of 3").wait_for()
    assert page.locator(".hints li").count() == 2
    page.get_by_role("tab", name="Solution").click()
    page.get_by_role("button", name="Show it anyway").click()
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    assert page.locator("#panel-solution .viewer").count() == 0
    page.get_by_role("button", name="Show it anyway").click()
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_selector("#panel-solution .cm-line:has-text('def attention')")
    tab.reload()
    page.get_by_role("tab", name="Hints").click()
    assert page.locator(".hints li").count() == 2
