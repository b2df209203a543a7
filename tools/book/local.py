"""Links into the repository where it has no address: its files as pages of the site."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from tools.book.sources import LOCAL, Sources

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{path}</title>
<link rel="stylesheet" href="{root}assets/changes.css">
</head>
<body>
<h1><code>{path}</code></h1>
<pre tabindex="0">{lines}</pre>
</body>
</html>
"""
LINK = re.compile(rf'href="{LOCAL}([^"#]+)(?:#(L\d+)[^"]*)?"')


def link_sources(output: str, depth: int, linked: set[str]) -> str:
    """A page whose links lead to the pages of `write_sources`; notes their files in `linked`."""

    def address(found: re.Match[str]) -> str:
        path, line = found.groups()
        linked.add(path)
        return f'href="{"../" * depth}source/{path}.html{f"#{line}" if line else ""}"'

    return LINK.sub(address, output)


def write_sources(sources: Sources, site: Path, linked: set[str]) -> None:
    """Write a page with numbered lines for each of the files."""
    for path in sorted(linked):
        place = site / "source" / f"{path}.html"
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = enumerate(sources.read(path).splitlines(), 1)
        body = "\n".join(f'<span id="L{number}">{escape(line)}</span>' for number, line in lines)
        root = "../" * (path.count("/") + 1)
        place.write_text(PAGE.format(path=escape(path), root=root, lines=body), "utf-8")
