"""One search index per language: a reader finds pages of the book being read, and loads half."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tools.book.words import LANGUAGES

INDEX = "search/search_index.json"
BASE = re.compile(r'("base": ")((?:\.\./)*)\.\.(")')


def split_index(site: Path) -> None:
    """Give each language but the first an index of its own, with addresses from its folder."""
    path = site / INDEX
    index = json.loads(path.read_text("utf-8"))
    docs = index["docs"]
    for language in LANGUAGES[1:]:
        folder = f"{language}/"
        mine = [one for one in docs if one["location"].startswith(folder)]
        docs = [one for one in docs if not one["location"].startswith(folder)]
        own = [one | {"location": one["location"].removeprefix(folder)} for one in mine]
        _write(site / language / INDEX, index, [language], own)
    _write(path, index, index["config"]["lang"], docs)


def _write(path: Path, index: dict[str, object], languages: list[str], docs: list[object]) -> None:
    config = index["config"]
    assert isinstance(config, dict)
    own = index | {"config": config | {"lang": languages}, "docs": docs}
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(own, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text, "utf-8")


def rebase(output: str) -> str:
    """Let a page's script take the folder of its language for the root of the site."""
    return BASE.sub(_shorter, output)


def _shorter(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2].removesuffix('/') or '.'}{found[3]}"
