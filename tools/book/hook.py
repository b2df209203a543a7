"""All that MkDocs knows of the generator: expand a page, name the repository, add the changes."""

from __future__ import annotations

import logging
import re
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page as SitePage

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import jieba  # noqa: E402

from tools.book.changes import write_changes  # noqa: E402  (the root must be importable first)
from tools.book.expand import expand  # noqa: E402
from tools.book.local import link_sources, write_sources  # noqa: E402
from tools.book.pages import Page  # noqa: E402
from tools.book.searching import rebase, split_index  # noqa: E402
from tools.book.sources import BRANCH, Sources  # noqa: E402
from tools.book.words import LANGUAGES, page_links  # noqa: E402

jieba.setLogLevel(logging.WARNING)  # the search plugin loads its dictionary, which is no news


KATEX = ROOT / "practice/web/static/vendor/katex"
ALTERNATE = re.compile(r'\s*<link rel="alternate" [^>]*hreflang=[^>]*>')
# The book also lies under /book/, but the two start pages name each other from the server's root.
START = re.compile(r'href="/(?=(?:en/)?" hreflang=)')


_linked: set[str] = set()


@cache
def _sources() -> Sources:
    return Sources(ROOT)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the repository where it has an address, which is written in pyproject.toml alone.

    Each build reads the repository again, so that `mkdocs serve` shows what has changed.
    """
    _sources.cache_clear()
    if address := _sources().repository:
        config.repo_url, config.repo_name = address, address.rpartition("/")[2]
    return config


def on_page_markdown(markdown: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
    """Expand the directives of a page, and close it with links to edit it and to report a fault."""
    language, _, name = page.file.src_uri.removesuffix(".md").partition("/")
    if name == "index":  # its picture is as wide as a page without a table of contents
        page.meta["hide"] = ["toc"]
    expanded = expand(_sources(), Page(language, name, markdown))
    if expanded.faults:
        raise PluginError("\n".join(str(fault) for fault in expanded.faults))
    address = _sources().repository
    return expanded.markdown + (f"\n\n{page_links(address, language, name)}\n" if address else "")


def on_page_context(context: Any, page: SitePage, config: MkDocsConfig, nav: Any) -> Any:
    """Point the edit button to the page's source."""
    address = _sources().repository
    page.edit_url = f"{address}/edit/{BRANCH}/docs/{page.file.src_uri}" if address else None
    return context


def on_post_page(output: str, page: SitePage, config: MkDocsConfig) -> str:
    """Keep the theme's script from what is not there, and let it search in the page's language.

    For each link to the other language in the head it would ask for a site map beside that page;
    the reader's own link to it stays.
    """
    output = ALTERNATE.sub("", output)
    depth = page.url.count("/")
    output = START.sub(f'href="{"../" * depth or "./"}', output)
    output = link_sources(output, depth, _linked)
    default = page.file.src_uri.startswith(f"{LANGUAGES[0]}/")
    return output if default else rebase(output)


@event_priority(-200)  # after the languages are put together, which is done at -100
def on_post_build(config: MkDocsConfig) -> None:
    """Write changes, sources that are linked, one search index per language, and KaTeX."""
    site = Path(config.site_dir)
    # It asks for its styles at the server's root, where they are not; the judge has its own.
    (site / "404.html").unlink(missing_ok=True)
    shutil.copytree(KATEX, site / "assets/katex", dirs_exist_ok=True)  # once per language
    write_changes(_sources(), site)
    write_sources(_sources(), site, _linked)
    split_index(site)
