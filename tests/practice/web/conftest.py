"""The browser of the tests in test_browser_*.py, and tabs that must stay without a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from chromium import launched

if TYPE_CHECKING:
    from browsing import Tab
    from playwright.sync_api import Browser, BrowserContext

# path -> Tab; keyword arguments go to the browser's context, `context` takes an open one.
Opens = Callable[..., "Tab"]


# One per file: Playwright keeps an event loop going in this thread, which tests of other files
# that start one of their own could not bear.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture
def opens(chromium: Browser) -> Iterator[Opens]:
    """Open a tab at an address; at the end no tab may have a fault."""
    from browsing import Tab

    tabs: list[Tab] = []
    contexts: list[BrowserContext] = []

    def open_tab(
        address: str, path: str = "/", *, context: BrowserContext | None = None, **options: Any
    ) -> Tab:
        if context is None:
            options = {"locale": "en-US", "viewport": {"width": 1280, "height": 800}} | options
            context = chromium.new_context(**options)
            contexts.append(context)
        tab = Tab(context.new_page(), address)
        tabs.append(tab)
        return tab.open(path)

    yield open_tab
    faults = [fault for tab in tabs for fault in tab.faults]
    for context in contexts:
        context.close()
    assert not faults
