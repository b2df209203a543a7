"""The page's files: what others wrote is what it should be, what we wrote keeps to the rules."""

import hashlib
import re
from pathlib import Path

import pytest
from serving import ROOT

from practice.judgelib.overview import DIFFICULTY, KIND

STATIC = ROOT / "practice" / "web" / "static"
VENDOR = STATIC / "vendor"
OURS = sorted(path for path in STATIC.rglob("*") if path.is_file() and VENDOR not in path.parents)
SVG = "http://www.w3.org/2000/svg"


def test_what_others_wrote_has_the_recorded_hashes() -> None:
    recorded = (ROOT / "practice/web/vendor/hashes.txt").read_text("utf-8").splitlines()
    found = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(VENDOR).as_posix()}"
        for path in sorted(VENDOR.rglob("*"))
        if path.is_file()
    ]
    assert sorted(found) == sorted(recorded)


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.relative_to(STATIC).as_posix())
def test_what_we_wrote_names_no_other_host_and_parses_no_html(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.findall(r"https?://[a-z]", text.replace(SVG, ""))
    if path.suffix == ".js":
        wrong = (
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|cssText"
        )
        assert not re.findall(wrong, text)
    if path.suffix == ".html":
        assert not re.findall(r"\sstyle=|<style|\son\w+=|<script(?![^>]*\ssrc=)", text)


def test_the_page_calls_things_as_the_command_line_does() -> None:
    texts = (STATIC / "texts.js").read_text("utf-8")
    for words in (DIFFICULTY, KIND):
        for name, text in words.items():
            assert f'    {name}: t("{text.zh}", "{text.en}"),' in texts


def test_every_text_is_in_both_languages() -> None:
    text = (STATIC / "texts.js").read_text("utf-8")
    used = "\n".join(path.read_text("utf-8") for path in OURS if path.suffix == ".js")
    names = re.findall(r"^  (\w+):", text, re.MULTILINE)
    assert len(names) > 80
    assert [name for name in names if f"TEXTS.{name}" not in used] == []
    # Whoever says something says it through TEXTS: no Chinese anywhere else but in look.js.
    for path in OURS:
        if path.name not in ("texts.js", "look.js", "index.html"):
            assert not re.findall(r"[\u4e00-\u9fff]", path.read_text("utf-8")), path
