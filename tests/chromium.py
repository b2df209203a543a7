"""A browser for tests that open pages."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def launched() -> Iterator[Browser]:
    """A headless Chromium: the system's, else Playwright's own.

    Where none starts the test is skipped, with the reason; it fails where `MINISGL_REQUIRE_LEVEL`
    says that all must be here.
    """
    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, NAMES)), None)
        try:
            arguments = ["--no-sandbox", "--disable-gpu"]
            browser = playwright.chromium.launch(executable_path=found, args=arguments)
        except Error as error:
            why = f"no Chromium starts ({found or 'none found'}): {error.message.splitlines()[0]}"
            if os.environ.get("MINISGL_REQUIRE_LEVEL"):
                pytest.fail(f"a browser is required here: {why}")
            pytest.skip(why)
        yield browser
        browser.close()
