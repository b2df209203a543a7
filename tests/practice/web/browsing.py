"""A tab that remembers every fault of the page it shows."""

from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Page, Request

CHECKS = Path(__file__).with_name("page_checks.js").read_text("utf-8")
VERDICT_MS = 40_000


class Tab:
    """One page of one server; `faults` are console errors, exceptions and foreign requests."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.faults: list[str] = []
        self.bytes = 0
        self._expected: tuple[str, ...] = ()
        page.set_default_timeout(10_000)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"exception: {error}"))
        page.on("request", self._request)
        page.on("requestfinished", self._finished)
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))

    def expect_errors(self, *words: str) -> None:
        """Console errors with one of these words are part of the test."""
        self._expected = words

    def open(self, path: str = "/") -> "Tab":
        """Go to a path of the server and wait until the page is all there."""
        self.page.goto(self.address + path)
        return self._ready()

    def reload(self) -> None:
        """Load the same page again."""
        self.page.reload()
        self._ready()

    def write(self, source: str) -> None:
        """Replace what is in the editor."""
        self.page.locator(".editor .cm-content").focus()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)

    def code(self) -> str:
        """What is in the editor, as far as it is drawn: all of a short file."""
        lines = self.page.locator(".editor .cm-line").all_inner_texts()
        return "\n".join("" if line == "\n" else line for line in lines)

    def verdict(self) -> str:
        """The code of the verdict that arrives."""
        self.page.wait_for_selector(".verdict .badge", timeout=VERDICT_MS)
        return self.page.inner_text(".verdict .badge").strip()

    def row(self, name: str) -> str:
        """The cell of the verdict's table with this heading."""
        return self.page.locator(f'.facts tr:has(th:text-is("{name}")) td').inner_text()

    def saved(self) -> None:
        """Wait until the draft is saved."""
        self.page.wait_for_selector('.saved[data-kind="saved"]')

    def complaints(self) -> list[str]:
        """What our own accessibility checks find wrong with the page as it is."""
        found: list[str] = self.page.evaluate(CHECKS)
        return found

    def wider_than_screen(self) -> int:
        """By how many pixels the page scrolls sideways."""
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(script))

    def _ready(self) -> "Tab":
        problem = urlsplit(self.page.url).path.startswith("/p/")
        self.page.wait_for_selector(".editor .cm-content" if problem else "h1")
        return self

    def _console(self, message: ConsoleMessage) -> None:
        expected = any(word in message.text for word in self._expected)
        if message.type in ("error", "warning") and not expected:
            self.faults.append(f"console {message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        host = urlsplit(request.url).netloc
        if host != urlsplit(self.address).netloc and not request.url.startswith("data:"):
            self.faults.append(f"request off the host: {request.url}")

    def _finished(self, request: Request) -> None:
        if not request.url.endswith("/events"):
            sizes = request.sizes()
            self.bytes += sizes["responseBodySize"] + sizes["responseHeadersSize"]
