"""Figures in a real browser: what they measure there, and the live ones by button and by key."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from chromium import launched
from tools import figures
from tools.figlib import traces

pytestmark = pytest.mark.slow

ASSETS = Path(__file__).resolve().parents[2] / "docs" / "assets"
POLICY = "default-src 'none'; script-src file:; style-src file:"
PAGE = """<!doctype html><html lang="{language}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="stylesheet" href="{assets}/figures.css"></head>
<body data-md-color-scheme="{scheme}">{body}<script src="{assets}/live.js"></script>
<script src="{assets}/sampler.js"></script></body></html>
"""
# Texts outside their picture, on each other, or smaller than eleven pixels.
FAULTS = """() => [...document.querySelectorAll('.fig-frame svg')].flatMap((svg) => {
  const view = svg.viewBox.baseVal, scale = svg.getBoundingClientRect().width / view.width;
  if (!scale) return [];
  const name = svg.closest('.fig').dataset.figure;
  const texts = [...svg.querySelectorAll('text')].map((text) => [text, text.getBBox()]);
  const faults = [];
  texts.forEach(([text, a], index) => {
    const where = `${name}: ${text.textContent}`;
    const right = view.x + view.width, bottom = view.y + view.height;
    if (a.x < view.x || a.x + a.width > right || a.y + a.height > bottom + 2)
      faults.push(`${where} is outside`);
    if (text.getAttribute('font-size') * scale < 10.95) faults.push(`${where} is too small`);
    for (const [other, b] of texts.slice(index + 1)) {
      const across = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
      const down = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
      if (across > 1 && down > 4) faults.push(`${where} lies on ${other.textContent}`);
    }
  });
  return faults;
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


def open_page(
    browser: Browser, folder: Path, language: str, *, width: int = 390, script: bool = True
) -> tuple[Page, list[str]]:
    """All figures on one page under a strict policy, and the list that its faults go to."""
    body = "".join(figures.render(name, language) for name in figures.names())
    path = folder / "figures.html"
    path.write_text(
        PAGE.format(
            language=language, policy=POLICY, assets=ASSETS.as_uri(), scheme="default", body=body
        ),
        "utf-8",
    )
    context = browser.new_context(
        viewport={"width": width, "height": 800}, java_script_enabled=script
    )
    page, faults = context.new_page(), list[str]()
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(path.as_uri())
    return page, faults


@pytest.mark.parametrize("width", [390, 820])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_texts_have_their_place_and_the_page_does_not_scroll_sideways(
    browser: Browser, tmp_path: Path, language: str, width: int
) -> None:
    page, faults = open_page(browser, tmp_path, language, width=width)
    assert page.evaluate(FAULTS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert faults == []


@pytest.mark.parametrize("name", ["live_radix", "live_pages"])
def test_a_live_figure_is_stepped_by_keys_buttons_and_slider(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    page, faults = open_page(browser, tmp_path, "en")
    figure = page.locator(f'[data-figure="{name}"]')
    output = figure.locator("output")
    count = figure.locator(".fig-frame").count()
    assert output.inner_text() == f"1 / {count}"
    height = figure.evaluate("one => one.getBoundingClientRect().height")

    figure.focus()
    for key, now in (("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("End", count)):
        page.keyboard.press(key)
        assert output.inner_text() == f"{now} / {count}"
    assert figure.locator('[data-step="next"]').is_disabled()
    figure.locator('[data-step="back"]').click()
    figure.locator('[data-step="next"]').press("Enter")
    page.keyboard.press("ArrowLeft")  # the button is off now, the keys go on
    assert output.inner_text() == f"{count - 1} / {count}"
    page.keyboard.press("Home")
    assert output.inner_text() == f"1 / {count}"
    below = figure.locator(".fig-controls").evaluate("one => one.getBoundingClientRect().top")
    assert below > figure.locator(".fig-frames").evaluate("one => one.getBoundingClientRect().top")
    figure.locator("input").fill("5")
    assert output.inner_text() == f"5 / {count}"
    assert figure.locator(".fig-frame:visible").count() == 1
    assert abs(figure.evaluate("one => one.getBoundingClientRect().height") - height) < 25

    figure.focus()
    page.keyboard.press(" ")
    page.wait_for_function(f"""() => document.querySelector(
        '[data-figure="{name}"] output').textContent.startsWith('6 ')""")
    page.keyboard.press(" ")
    assert figure.locator('[data-step="play"]').get_attribute("aria-pressed") == "false"
    assert faults == []


def test_without_javascript_the_first_and_the_last_frame_are_there(
    browser: Browser, tmp_path: Path
) -> None:
    page, _ = open_page(browser, tmp_path, "zh", script=False)
    figure = page.locator('[data-figure="live_radix"]')
    assert figure.locator(".fig-frame:visible").count() == 2
    assert not figure.locator(".fig-controls").is_visible()


def test_the_live_sampler_keeps_what_the_engine_keeps(browser: Browser, tmp_path: Path) -> None:
    page, faults = open_page(browser, tmp_path, "en")
    figure = page.locator('[data-figure="live_sampler"]')
    counts = figure.locator('[data-knob="top_k"]').get_attribute("data-counts")
    assert counts is not None
    for temperature, top_k, top_p, kept in traces.load("ch09_sampler")["checks"]:
        place = counts.split(" ").index(str(top_k or "∞"))
        for name, value in (("temperature", temperature), ("top_k", place), ("top_p", top_p)):
            figure.locator(f'[data-knob="{name}"]').fill(str(value))
        assert figure.get_attribute("data-kept") == str(kept), (temperature, top_k, top_p)
    figure.locator('[data-knob="temperature"]').fill("0")
    figure.locator("[data-draw]").click()
    assert figure.locator("[data-drawn]").inner_text() == "blue"
    assert faults == []
