"""The page of a chapter's whole change: one unified diff per file, on a page of plain HTML."""

from __future__ import annotations

from html import escape
from pathlib import Path

from tools.book.sources import Sources
from tools.steplib import Step, marks, unified

PAGE = """<!doctype html>
<html lang="zh">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="../assets/changes.css">
</head>
<body>
<h1>{title}</h1>
<p><a href="../{page}/">← 中文</a> · <a href="../en/{page}/">← English</a></p>
<nav><ul>
{index}
</ul></nav>
{files}
</body>
</html>
"""
KINDS = {"@": "hunk", "+": "added", "-": "gone"}


def write_changes(sources: Sources, site: Path) -> None:
    """Write `changes/PAGE.html` for every chapter that changes the package."""
    folder = site / "changes"
    folder.mkdir(parents=True, exist_ok=True)
    for step in sources.book:
        (folder / f"{step.page}.html").write_text(changes_page(sources, step), "utf-8")


def changes_page(sources: Sources, step: Step) -> str:
    """The page of one chapter."""
    found = [path for path, mark in marks(sources.book, step.number).items() if mark]
    return PAGE.format(
        title=escape(f"{step.number:02} {step.title['zh']} · {step.title['en']}"),
        page=step.page,
        index="\n".join(f'<li><a href="#{path}"><code>{path}</code></a></li>' for path in found),
        files="\n".join(_file(sources, step, path) for path in found),
    )


def _file(sources: Sources, step: Step, path: str) -> str:
    lines = unified(sources.book, step.number, path).split("\n")
    body = "\n".join(_line(line) for line in lines[2:])
    return f'<h2 id="{path}"><code>{path}</code></h2>\n<pre tabindex="0">{body}</pre>'


def _line(line: str) -> str:
    kind = KINDS.get(line[:1])
    return f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line)
