"""In a real browser: no text and no verdict is lost by a reload, a dead server, a second tab."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from restarting import Server
from serving import ENDLESS, Reader, write_problem
from serving import TOTAL as API

if TYPE_CHECKING:
    from browsing import Tab

TOTAL = "/p/ch01-total"
Opens: TypeAlias = "Callable[..., Tab]"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("root")
    write_problem(root, case_s=5.0)  # time enough to load the page again while it runs
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINISGL_HOME", str(root / "home"))
        server = Server(root)
        yield server
        server.kill()


def draft_on(server: Server) -> Any:
    """The source of the draft as the server has it, or None."""
    draft = Reader(server.port).get(API)["draft"]
    return draft and draft["source"]


@pytest.fixture
def server(started: Server) -> Server:
    """The server, with no draft; a test that kills it starts it again."""
    Reader(started.port).ask("DELETE", f"{API}/draft")
    return started


def test_a_draft_survives_a_reload_and_a_killed_server(server: Server, opens: Opens) -> None:
    tab = opens(server.address, TOTAL)
    tab.write("# 写到一半")
    tab.saved()
    assert draft_on(server) == "# 写到一半"
    server.kill()
    server.restart()
    tab.reload()
    assert tab.code() == "# 写到一半"
    tab.open()
    assert tab.page.locator(".card .state.draft").count() == 1


def test_leaving_at_once_saves_too(server: Server, opens: Opens) -> None:
    tab = opens(server.address, TOTAL)
    tab.write("# left at once")
    tab.open("/")
    assert draft_on(server) == "# left at once"


def test_a_dead_server_is_said_and_nothing_is_lost(server: Server, opens: Opens) -> None:
    tab = opens(server.address, TOTAL)
    tab.expect_errors("ERR_CONNECTION")
    server.kill()
    tab.write("# written while nobody answers")
    tab.page.get_by_text("The judge does not answer.").first.wait_for()
    tab.page.wait_for_selector('.saved[data-kind="kept"]')
    tab.page.keyboard.press("Control+Enter")
    tab.page.wait_for_selector("#panel-result .refused")
    server.restart()
    # The page tries by itself too: the button may go in the moment in which it is clicked.
    again = tab.page.get_by_role("button", name="Try again")
    again.evaluate_all("(found) => found.forEach((button) => button.click())")
    tab.saved()
    assert tab.page.locator(".notice-gone").count() == 0
    assert draft_on(server) == "# written while nobody answers"


def test_what_a_closed_tab_could_not_save_is_there_the_next_time(
    server: Server, opens: Opens
) -> None:
    tab = opens(server.address, TOTAL)
    tab.expect_errors("ERR_CONNECTION")
    server.kill()
    tab.write("# the lid was closed")
    tab.page.wait_for_selector('.saved[data-kind="kept"]')
    tab.page.close()
    server.restart()
    again = opens(server.address, TOTAL, context=tab.page.context)
    assert again.code() == "# the lid was closed"
    again.saved()
    assert draft_on(server) == "# the lid was closed"


def test_of_two_tabs_the_newer_text_wins_and_the_older_tab_is_told(
    server: Server, opens: Opens
) -> None:
    old = opens(server.address, TOTAL)
    new = opens(server.address, TOTAL, context=old.page.context)
    new.write("# newer")
    new.saved()
    old.page.get_by_text("changed in another tab").first.wait_for()
    old.page.clock.install()
    old.write("# typed in the older tab")
    old.page.clock.fast_forward(60_000)
    assert draft_on(server) == "# newer"
    old.page.get_by_role("button", name="Take that one").click()
    assert old.code() == "# newer"
    assert old.page.locator(".notice-other").count() == 0
    new.write("# newer still")
    old.page.get_by_text("changed in another tab").first.wait_for()
    old.write("# no, this one")
    old.page.get_by_role("button", name="Keep this one").click()
    old.saved()
    assert draft_on(server) == "# no, this one"
    new.page.get_by_text("changed in another tab").first.wait_for()


def test_what_is_no_draft_of_ours_in_the_browsers_store_costs_nothing(
    server: Server, opens: Opens
) -> None:
    tab = opens(server.address, TOTAL)
    starter = tab.code()
    for odd in ("{half", '{"source": "x", "at": "never"}'):
        tab.page.evaluate("odd => localStorage.setItem('judge.draft.ch01-total', odd)", odd)
        tab.reload()
        assert tab.code() == starter and tab.page.locator(".notice").count() == 0


def test_without_a_store_in_the_browser_all_works(server: Server, opens: Opens) -> None:
    tab = opens(server.address)
    tab.page.add_init_script(
        """for (const name of ["localStorage", "sessionStorage"]) {
            const get = () => { throw new DOMException("off", "SecurityError"); };
            Object.defineProperty(window, name, { get });
        }"""
    )
    tab.open(TOTAL)
    tab.write("# only on the server")
    tab.saved()
    tab.page.locator("#language").click()
    assert draft_on(server) == "# only on the server"


def test_a_paste_that_is_too_large_says_so_and_stays_in_the_browser(
    server: Server, opens: Opens
) -> None:
    tab = opens(server.address, TOTAL)
    tab.expect_errors("413")
    tab.write("x = 1\n" * 45_000)
    tab.page.wait_for_selector('.saved[data-kind="lost"]:has-text("256 KiB")')
    tab.page.keyboard.press("Control+Enter")
    tab.page.wait_for_selector("#panel-result .refused:has-text('256 KiB')")
    tab.reload()
    assert tab.code().startswith("x = 1\nx = 1\n")


def test_an_endless_loop_ends_as_a_timeout_even_across_a_reload_and_a_killed_server(
    server: Server, opens: Opens
) -> None:
    tab = opens(server.address, TOTAL)
    tab.expect_errors("ERR_CONNECTION", "ERR_INCOMPLETE")
    tab.write(ENDLESS)
    tab.page.keyboard.press("Control+Enter")
    tab.page.wait_for_selector(".waiting:has-text('Judging')")
    tab.reload()
    tab.page.wait_for_selector(".waiting")
    server.kill()
    tab.page.wait_for_selector(".waiting:has-text('The connection was lost')")
    server.restart()
    assert tab.verdict() == "TLE"


def test_starting_over_asks_and_can_be_undone(server: Server, opens: Opens) -> None:
    tab = opens(server.address, TOTAL)
    starter = tab.code()
    assert starter.startswith("def total(numbers, start):")
    tab.write("# mine")
    tab.saved()
    tab.page.get_by_role("button", name="Start over").click()
    tab.page.get_by_role("button", name="Replace").click()
    tab.page.wait_for_selector(".editor .cm-line:has-text('def total')")
    assert tab.code() == starter and draft_on(server) is None
    tab.page.keyboard.press("Control+z")
    tab.saved()
    assert tab.code() == "# mine"


def test_the_file_of_the_command_line_is_where_the_browser_begins(
    server: Server, opens: Opens
) -> None:
    file = server.root / "workspace" / "practice" / "ch01-total.py"
    file.parent.mkdir(parents=True)
    file.write_text("# from my own editor\n", "utf-8")
    tab = opens(server.address, TOTAL)
    assert tab.code() == "# from my own editor\n"
    tab.write("# and on in the browser")
    tab.saved()
    tab.page.get_by_role("button", name="Open the file in workspace").click()
    tab.page.get_by_role("button", name="Replace").click()
    tab.page.wait_for_selector(".editor .cm-line:has-text('from my own editor')")
    tab.page.keyboard.press("Control+z")
    assert tab.code() == "# and on in the browser"
    tab.saved()
    file.write_text("# saved again there\n", "utf-8")  # while the page is open
    tab.page.get_by_role("button", name="Open the file in workspace").click()
    tab.page.get_by_role("button", name="Replace").click()
    tab.page.wait_for_selector(".editor .cm-line:has-text('saved again there')")
    file.unlink()
    tab.page.get_by_role("button", name="Open the file in workspace").click()
    tab.page.get_by_role("button", name="Replace").click()
    tab.page.get_by_text("This file is no longer there.").first.wait_for()


def test_a_change_of_the_file_is_offered_and_never_overwritten(
    server: Server, opens: Opens
) -> None:
    file = server.root / "workspace" / "practice" / "ch01-total.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("# one\n", "utf-8")
    tab = opens(server.address, TOTAL)
    file.write_text("# two\n", "utf-8")
    tab.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    tab.page.get_by_text("The file in workspace was changed.").first.wait_for()
    tab.page.get_by_role("button", name="Take that one").click()
    assert tab.code() == "# two\n" and draft_on(server) is None
    file.unlink()
