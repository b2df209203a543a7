"""The book as a PDF: all pages on one sheet, linked among themselves, printed by Chromium."""

import re
import shutil
from pathlib import Path

import pytest

from tools.book.pdf import CHROMIUM, print_site, sheet_of

INDEX = """<html><head><title>The book</title>
<link rel="stylesheet" href="{root}assets/book.css"></head><body>
<a href="./" class="md-nav__link">Start</a><a href="one/" class="md-nav__link">One</a>
<article class="md-typeset"><h1 id="start">Start</h1>
<a href="one/#middle">in</a> <a href="https://example.org/">out</a>
<h2 id="demo">Demo</h2></article></body></html>"""
ONE = """<html><body><article class="md-typeset"><h1 id="start">One</h1>
<a href="../">home</a> <a href="#middle">here</a>
<details><summary>Answer</summary><h2 id="middle">Middle</h2></details></article></body></html>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for folder, root in ((tmp_path, ""), (tmp_path / "en", "../")):
        (folder / "one").mkdir(parents=True)
        (folder / "index.html").write_text(INDEX.format(root=root), "utf-8")
        (folder / "one/index.html").write_text(ONE, "utf-8")
    return tmp_path


def test_all_pages_are_on_the_sheet_and_lead_to_each_other(site: Path) -> None:
    for folder in (site, site / "en"):
        sheet = sheet_of(folder, "en")
        ids = re.findall(r' id="([^"]*)"', sheet)
        assert len(ids) == len(set(ids)) and {"--", "one--", "--start", "one--start"} <= {*ids}
        inside = re.findall(r'href="#([^"]*)"', sheet)
        assert inside == ["one--middle", "--", "one--middle"] and {*inside} <= {*ids}
        assert 'href="https://example.org/"' in sheet and 'href="assets/book.css"' in sheet
        assert "<details open>" in sheet


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, CHROMIUM)), reason="no Chromium")
def test_a_file_is_printed_for_each_language_and_linked(site: Path) -> None:
    assert len([*print_site(site)]) == 2
    for folder, language in ((site, "zh"), (site / "en", "en")):
        name = f"mini-sglang-{language}.pdf"
        assert (folder / name).read_bytes().startswith(b"%PDF")
        assert f'<a href="{name}">' in (folder / "index.html").read_text("utf-8")
    assert not [*site.glob("print-*")]
