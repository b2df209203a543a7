"""The built book in a real browser: every page in both languages, on a phone, in both schemes."""

import contextlib
import gzip
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, Route

from chromium import launched
from tools.book.pages import load_pages
from tools.book.replay import replay
from tools.book.site import build_site, is_current
from tools.book.sources import Sources
from tools.book.words import LANGUAGES

ROOT = Path(__file__).resolve().parents[2]
PAGE_BYTES = 200_000
BUILD_SECONDS = 60.0
# Text of less than 4.5 to 1 (3 to 1 where it is large), with the colours as they are on the screen.
# Text in drawings is the figures' own test.
CONTRAST = """() => {
  const parse = (text) => {
    const found = text.match(/rgba?\\(([^)]+)\\)/);
    if (!found) return null;
    const [r, g, b, a = 1] = found[1].split(/[,/ ]+/).filter(Boolean).map(Number);
    return [r, g, b, a];
  };
  const over = (top, under) => top.slice(0, 3).map((c, i) => c * top[3] + under[i] * (1 - top[3]));
  const light = (colour) => {
    const [r, g, b] = colour.map((c) => {
      c /= 255;
      return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour && colour[3] > 0) layers.push(colour);
      if (colour && colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const faults = new Set();
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest("svg, [hidden]")) continue;
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
      continue;
    const box = element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const style = getComputedStyle(element);
    const colour = parse(style.color);
    if (!colour) continue;
    const under = ground(element);
    const [a, b] = [light(over(colour, under)), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) {
      const name = `${element.tagName.toLowerCase()}.${element.className}`;
      faults.add(`${name} ${ratio.toFixed(2)}: ${element.textContent.trim().slice(0, 30)}`);
    }
  }
  return [...faults].slice(0, 5);
}"""
# What the page scrolls sideways for, or what is cut off because the theme lets it not scroll:
# whatever is wider than the screen and does not lie in a box that scrolls by itself.
SIDEWAYS = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (one) => {
    for (; one && one !== document.body; one = one.parentElement)
      if (["auto", "scroll"].includes(getComputedStyle(one).overflowX)) return true;
    return false;
  };
  return [...document.querySelectorAll(".md-content *, .md-footer *, body > :not([class])")]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > width + 1)
    .filter((one) => !scrolls(one.parentElement))
    .filter((one) => !one.closest("svg, .md-clipboard, .katex-mathml"))
    .slice(0, 3).map((one) => `${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`);
}"""
# What a reader types: titles and code of the blocks, and what a page says to delete.
BLOCKS = """() => [...document.querySelectorAll("article .highlight, article .delete")]
  .map((one) => [
    one.querySelector(".filename, .admonition-title")?.textContent,
    one.querySelector("pre code")?.textContent ?? null,
  ])
  .filter(([title]) => title)"""
# Every formula is one of KaTeX's, in the room that the page has for it, and none is an error.
TYPESET = """() => {
  const all = [...document.querySelectorAll(".arithmatex")];
  const done = all.filter((one) => one.querySelector(".katex:not(.katex-error) .katex-html"));
  return all.length > 0 && done.length === all.length && document.fonts.status === "loaded";
}"""
# Put a scheme on at once: colours that are on their way to others are nobody's.
WEAR = """(scheme) => {
  const still = document.createElement("style");
  still.textContent = "* { transition: none !important }";
  document.head.append(still);
  document.body.dataset.mdColorScheme = scheme;
}"""

pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, as files and below /book/, and says nothing."""

    def translate_path(self, path: str) -> str:
        """The judge serves the book at /book/."""
        return super().translate_path(path.removeprefix("/book"))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def handle(self) -> None:
        """A browser that goes on to the next page drops what it was still getting."""
        with contextlib.suppress(ConnectionError):
            super().handle()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if is_current(ROOT):
        return ROOT / "site"
    folder = tmp_path_factory.mktemp("book") / "site"
    started = time.perf_counter()
    build_site(ROOT, folder)
    assert time.perf_counter() - started < BUILD_SECONDS
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@dataclass
class Seen:
    """A browser's page, and what went wrong while it was looked at."""

    page: Page
    faults: list[str] = field(default_factory=list)


def look(browser: Browser, address: str, width: int, height: int = 800) -> Seen:
    """A window in which every error, failed request and request to another site is noted."""
    context = browser.new_context(viewport={"width": width, "height": height})
    seen = Seen(context.new_page())

    def guard(route: Route, request: Request) -> None:
        if urlsplit(request.url).netloc == urlsplit(address).netloc or request.url[:5] == "blob:":
            route.continue_()
        else:
            seen.faults.append(f"off-site: {request.url}")
            route.abort()

    context.route("**/*", guard)
    page = seen.page
    page.on(
        "console",
        lambda said: seen.faults.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: seen.faults.append(str(error)))
    page.on("requestfailed", lambda request: note_failure(seen, request))
    page.on(
        "response",
        lambda answer: (
            seen.faults.append(f"{answer.status}: {answer.url}") if answer.status >= 400 else None
        ),
    )
    return seen


def note_failure(seen: Seen, request: Request) -> None:
    """What is still on its way when the next page is opened is dropped, and has not failed."""
    if request.failure != "net::ERR_ABORTED":
        seen.faults.append(f"{request.failure}: {request.url}")


def look_without_search(browser: Browser, address: str, site: Path) -> Seen:
    """A phone's window whose index is empty: loading it takes most of a page's time."""
    seen = look(browser, address, 390)
    empty = json.loads((site / "search/search_index.json").read_text("utf-8")) | {"docs": []}
    seen.page.route("**/search/search_index.json", lambda route: route.fulfill(json=empty))
    return seen


def pages_of(site: Path) -> list[str]:
    found = (path.parent.relative_to(site).as_posix() for path in site.rglob("index.html"))
    return sorted("" if path == "." else f"{path}/" for path in found)


def test_every_page_is_quiet_narrow_and_readable(
    site: Path, address: str, browser: Browser
) -> None:
    seen = look_without_search(browser, address, site)
    pages = pages_of(site)
    assert len(pages) == 2 * len(list((ROOT / "docs" / "zh").glob("*.md")))
    for path in pages:
        before = len(seen.faults)
        seen.page.goto(f"{address}/{path}", wait_until="load")
        seen.page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
        seen.faults += seen.page.evaluate(SIDEWAYS)
        for scheme in ("default", "slate"):
            seen.page.evaluate(WEAR, scheme)
            seen.faults += [f"{scheme}: {one}" for one in seen.page.evaluate(CONTRAST)]
        seen.faults[before:] = [f"/{path}: {one}" for one in seen.faults[before:]]
    assert not seen.faults, "\n".join(seen.faults)


def test_typing_what_a_browser_shows_gives_the_steps_package(
    site: Path, address: str, browser: Browser
) -> None:
    sources = Sources(ROOT)
    page = look(browser, address, 1280).page
    for source in load_pages(ROOT):
        step = sources.step_of(source.name)
        if step:
            folder = "" if source.language == LANGUAGES[0] else f"{source.language}/"
            page.goto(f"{address}/{folder}{source.name}/", wait_until="load")
            assert "```" not in page.inner_text("article"), source.path
            text = "\n".join(
                f'!!! delete "{title}"' if code is None else f'```py title="{title}"\n{code}```'
                for title, code in page.evaluate(BLOCKS)
            )
            listed = [(one.path, one.symbol) for one in sources.settings.hidden(source.name)]
            after = sources.after(step, source.language)
            outcome = replay(text, sources.before(step), after, listed)
            assert not outcome.differences, f"{source.path}\n{outcome.differences}"


def test_what_is_looked_for_would_be_found(address: str, browser: Browser) -> None:
    seen = look(browser, address, 390)
    seen.page.goto(f"{address}/setup/", wait_until="load")
    seen.page.evaluate(
        """() => {
          const pale = document.createElement("p");
          pale.textContent = "pale";
          pale.style.color = "#999";
          const wide = document.createElement("div");
          wide.style.width = "900px";
          document.querySelector("article").append(pale, wide);
          console.error("an error");
          new Image().src = "https://example.org/x.png";
          new Image().src = "/none.png";
        }"""
    )
    seen.page.wait_for_load_state("networkidle")
    assert any("pale" in one for one in seen.page.evaluate(CONTRAST)), seen.page.evaluate(CONTRAST)
    assert any("DIV" in one for one in seen.page.evaluate(SIDEWAYS))
    for part in ("an error", "off-site: https://example.org/x.png", "404: "):
        assert any(part in one for one in seen.faults), seen.faults


@pytest.mark.parametrize("wish, scheme", [("light", "default"), ("dark", "slate")])
def test_the_scheme_is_the_one_that_the_reader_prefers(
    wish: Literal["light", "dark"], scheme: str, address: str, browser: Browser
) -> None:
    seen = look(browser, address, 1280)
    seen.page.emulate_media(color_scheme=wish)
    seen.page.goto(f"{address}/en/ch04_runner/", wait_until="load")
    assert seen.page.get_attribute("body", "data-md-color-scheme") == scheme
    seen.faults += seen.page.evaluate(SIDEWAYS) + seen.page.evaluate(CONTRAST)
    assert not seen.faults, "\n".join(seen.faults)


def type_word(page: Page, word: str) -> None:
    page.fill(".md-search__input", word)
    page.press(".md-search__input", "End")  # it looks when a key is let go


# Words as a reader types them, and a page on which each is found.
LOOKED_FOR = {
    "": {
        "前缀缓存": "ch08_radix_cache",
        "驱逐": "ch08_radix_cache",
        "分页": "ch06_paged_pool",
        "采样器": "ch09_sampler",
        "transformers": "ch00_tiny_engine",
        "safetensors": "ch03_models",
        "eviction": "glossary",
        "kv_cache": "ch05_kv_cache",
        "LLM.generate": "ch04_runner",
        "MINISGL_HOME": "setup",
    },
    "en/": {
        "radix": "ch08_radix_cache",
        "evicted": "ch08_radix_cache",
        "pages": "ch06_paged_pool",
        "penalties": "ch09_sampler",
        "transformers": "ch00_tiny_engine",
        "safetensors": "ch03_models",
        "eviction": "glossary",
        "kv_cache": "ch05_kv_cache",
        "LLM.generate": "ch04_runner",
        "MINISGL_HOME": "setup",
    },
}


@pytest.mark.parametrize("path", LOOKED_FOR)
def test_search_finds(path: str, address: str, browser: Browser) -> None:
    seen = look(browser, address, 1280)
    seen.page.goto(f"{address}/{path}", wait_until="load")
    for word, page in LOOKED_FOR[path].items():
        type_word(seen.page, "zzzz")
        seen.page.wait_for_selector(".md-search-result__item", state="detached", timeout=20_000)
        type_word(seen.page, word)
        found = f'.md-search-result__item a[href*="/{path}{page}/"]'
        seen.page.wait_for_selector(found, state="attached", timeout=20_000)
        links = seen.page.eval_on_selector_all(
            ".md-search-result__item a", "all => all.map((one) => new URL(one.href).pathname)"
        )
        assert all(link.startswith("/en/") == (path == "en/") for link in links), links
    assert not seen.faults, "\n".join(seen.faults)


def test_formulas_are_typeset(site: Path, address: str, browser: Browser) -> None:
    seen = look_without_search(browser, address, site)
    pages = [
        one for one in pages_of(site) if "arithmatex" in (site / one / "index.html").read_text()
    ]
    assert {one.startswith("en/") for one in pages} == {True, False}
    for path in pages:
        seen.page.goto(f"{address}/{path}", wait_until="load")
        seen.page.wait_for_function(TYPESET, timeout=10_000)
        seen.faults += seen.page.evaluate(SIDEWAYS)
    assert not seen.faults, "\n".join(seen.faults)


def test_the_other_language_is_one_click_away_wherever_the_book_lies(
    address: str, browser: Browser
) -> None:
    seen = look(browser, address, 1280)
    seen.page.goto(f"{address}/book/ch05_kv_cache/", wait_until="load")
    seen.faults.clear()  # the judge is not there, which the cards find out
    link = seen.page.locator(".md-select__link[hreflang=en]")
    assert link.evaluate("one => one.href") == f"{address}/book/en/ch05_kv_cache/"


def test_code_to_write_is_folded_until_one_switch_opens_all(address: str, browser: Browser) -> None:
    page = look(browser, address, 1280).page
    page.goto(f"{address}/en/ch05_kv_cache/", wait_until="load")
    folds = page.locator("details.write")
    assert folds.count() > 20
    assert page.locator("details.write[open]").count() == 0
    assert not page.get_by_text("is_causal=num_new == num_all").is_visible()
    page.get_by_label("Show all code").check()
    assert page.locator("details.write[open]").count() == folds.count()
    page.goto(f"{address}/ch02_layers/", wait_until="load")
    assert page.locator("details.write:not([open])").count() == 0  # remembered
    page.get_by_label("展开全部代码").uncheck()
    page.reload(wait_until="load")
    assert page.locator("details.write[open]").count() == 0


def test_below_the_judge_book_and_problems_are_one(address: str, browser: Browser) -> None:
    seen = look(browser, address, 1280)
    card = {"id": "ch05-attend-bottom-right", "state": "accepted"}
    answer = {"chapters": [{"problems": [card]}], "done": 1, "total": 19, "verified": [4]}
    seen.page.route("**/api/problems", lambda route: route.fulfill(json=answer))
    seen.page.goto(f"{address}/book/en/ch05_kv_cache/", wait_until="load")
    found = seen.page.locator(f"[data-problem={card['id']}]")
    found.locator(".problem-state:not([hidden])").wait_for(timeout=10_000)
    assert found.locator(".problem-state").text_content() == "accepted"
    assert found.locator("a").evaluate("one => one.href") == f"{address}/p/{card['id']}"
    there = seen.page.locator(".md-header a", has_text="Problems 1/19")
    assert there.evaluate("one => one.href") == f"{address}/"
    marked = seen.page.locator(".md-nav--primary li", has=seen.page.get_by_label("passes verify"))
    assert marked.last.inner_text().startswith("04 ")
    seen.page.goto(f"{address}/book/en/ch04_runner/", wait_until="load")
    seen.page.locator('article a[href$="/p/ch09-top-p"]').wait_for(timeout=10_000)
    assert not seen.faults, "\n".join(seen.faults)
    # Without the judge a card is a title and a command, and asks nobody.
    seen.page.goto(f"{address}/en/ch05_kv_cache/", wait_until="load")
    assert seen.page.locator("[data-problem] a").count() == 0
    assert seen.page.locator("[data-problem] code").first.is_visible()
    assert seen.page.locator(".md-header a", has_text="Problems").count() == 0


def test_no_link_within_the_site_leads_nowhere(site: Path) -> None:
    texts = {path.resolve(): path.read_text("utf-8") for path in site.rglob("*.html")}
    anchors = {path: set(re.findall(r'\bid="([^"]*)"', text)) for path, text in texts.items()}
    assert any("source" in path.parts for path in texts)  # what `code:` leads to
    faults = []
    for page, text in texts.items():
        for address, anchor in re.findall(r'href="([^":#?]*)(?:#([^"]*))?"', text):
            target = (page.parent / address).resolve() if address else page
            target = target / "index.html" if target.is_dir() else target
            known = anchors.get(target, {anchor})
            if not target.is_file() or (anchor and unquote(anchor) not in known):
                faults.append(f"{page}: {address}#{anchor}")
    assert not faults, "\n".join(faults[:10])


def test_pages_are_light(site: Path) -> None:
    """A page with the styles and scripts that it names, as a server would send them."""
    theme = [*site.glob("assets/stylesheets/*.css"), *site.glob("assets/javascripts/bundle*.js")]
    own = [*site.glob("assets/*.css"), *site.glob("assets/*.js")]
    shared = sum(packed(path) for path in [*theme, *own])
    for path in site.rglob("*.html"):
        assert packed(path) + shared <= PAGE_BYTES, path


def packed(path: Path) -> int:
    return len(gzip.compress(path.read_bytes()))


def test_the_changes_of_a_chapter_have_a_page(address: str, browser: Browser) -> None:
    seen = look(browser, address, 390)
    schemes: list[Literal["light", "dark"]] = ["light", "dark"]
    for scheme in schemes:
        seen.page.emulate_media(color_scheme=scheme)
        seen.page.goto(f"{address}/changes/ch08_radix_cache.html", wait_until="load")
        seen.faults += seen.page.evaluate(SIDEWAYS) + seen.page.evaluate(CONTRAST)
    assert seen.page.locator(".added").count() > 50
    assert not seen.faults, "\n".join(seen.faults)
