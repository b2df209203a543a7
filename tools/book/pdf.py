"""The book as a PDF for each language, printed by Chromium from the built site."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tools.book.errors import BookError
from tools.book.words import LANGUAGES, say

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 240
PRINT = """<!doctype html>
<html lang="{language}" dir="ltr"><head><meta charset="utf-8"><title>{title}</title>
{styles}<script type="module" src="assets/math.js"></script>
<style>
@page {{ size: A4; margin: 16mm 14mm; }}
html {{ font-size: 100%; }}
article {{ break-before: page; }}
article:first-of-type {{ break-before: auto; }}
.headerlink, .md-content__button, .page-links, .md-button, [data-unfold], .md-typeset
summary::after {{ display: none !important; }}
.md-typeset pre > code {{ white-space: pre-wrap; }}
.fig, pre, tr {{ break-inside: avoid; }}
h1, h2, h3, h4, summary, .filename {{ break-after: avoid; }}
</style></head>
<body dir="ltr" data-md-color-scheme="default">{articles}</body></html>
"""
STYLE = re.compile(r'<link rel="stylesheet" href="(?:\.\./)*([^"]+)">')
ARTICLE = re.compile(r"<article.*?</article>", re.S)
ENTRY = re.compile(r'<a href="((?:[\w-]+/)?)" class="md-nav__link')
PAGE = re.compile(r'href="(?:\.\./)?([\w-]*)/?(?:#([^"]*))?"')
BEFORE = '<h2 id="demo">'  # on the start page


def print_site(site: Path) -> Iterator[str]:
    """Print a built site and link the files on its start pages; yields a line for each file."""
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if not browser:
        names = ", ".join(CHROMIUM)
        raise BookError(f"没有找到浏览器：安装 {names} 之一", f"no browser: install one of {names}")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for language in LANGUAGES:
            yield _print(browser, server.server_port, site, language)
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _print(browser: str, port: int, site: Path, language: str) -> str:
    folder = site if language == LANGUAGES[0] else site / language
    sheet, target = site / f"print-{language}.html", folder / f"mini-sglang-{language}.pdf"
    sheet.write_text(sheet_of(folder, language), "utf-8")
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
        command += ["--generate-pdf-document-outline"]
        command += [f"--user-data-dir={profile}", "--virtual-time-budget=60000"]
        command += [f"--print-to-pdf={target}", f"http://127.0.0.1:{port}/{sheet.name}"]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    sheet.unlink()
    if ended.returncode or not target.is_file():
        raise BookError(*[f"{browser}: {ended.stderr.strip()[-300:]}"] * 2)
    index = folder / "index.html"
    size = f"{target.stat().st_size / 1e6:.1f} MB"
    words = say(language, "整本书的 PDF", "The whole book as a PDF")
    link = f'<p><a href="{target.name}">{words}</a> ({size})</p>'
    index.write_text(index.read_text("utf-8").replace(BEFORE, link + BEFORE, 1), "utf-8")
    return f"✓ {target.relative_to(site.parent)}: {size}"


def sheet_of(folder: Path, language: str) -> str:
    """All pages of a language on one, in the order of the navigation, linked among themselves."""
    index = (folder / "index.html").read_text("utf-8")
    names = dict.fromkeys(["", *(found.rstrip("/") for found in ENTRY.findall(index))])
    articles = [_article(folder / name / "index.html", name, names) for name in names]
    title = re.search(r"<title>(.*?)</title>", index)
    styles = "".join(f'<link rel="stylesheet" href="{one}">\n' for one in STYLE.findall(index))
    return PRINT.format(
        language=language,
        title=title[1] if title else "",
        styles=styles,
        articles="\n".join(articles),
    )


def _article(path: Path, name: str, names: dict[str, None]) -> str:
    """The content of a page: ids are made the page's own, and what is folded is open."""
    found = ARTICLE.search(path.read_text("utf-8"))
    if found is None:
        raise BookError(f"{path}: 没有正文", f"{path}: has no article")

    def link(href: re.Match[str]) -> str:
        page, anchor = href.groups()
        page = name if href[0].startswith('href="#') else page
        return f'href="#{page}--{anchor or ""}"' if page in names else href[0]

    text = re.sub(r'\bid="', f'id="{name}--', PAGE.sub(link, found[0]))
    text = text.replace("<details", "<details open")
    return text.replace("<article", f'<article id="{name}--"', 1)
