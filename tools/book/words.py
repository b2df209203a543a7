"""The words that the generator puts on pages, in both languages."""

from __future__ import annotations

from tools.book.outline import HEAD
from tools.book.reader import Place

LANGUAGES = ("zh", "en")
Text = dict[str, str]


def say(language: str, zh: str, en: str) -> str:
    """The one of two texts that belongs on a page of `language`."""
    return zh if language == "zh" else en


def piece(language: str, symbol: str) -> str:
    """A symbol as titles name it."""
    if symbol == HEAD:
        return say(language, "文件开头", "the top of the file")
    if symbol.endswith(f".{HEAD}"):
        outer = symbol.removesuffix(f".{HEAD}")
        return say(language, f"{outer} 的开头", f"the top of {outer}")
    return symbol


def title(language: str, path: str, symbol: str, place: Place) -> str:
    """The title of a code block: the file, and what the reader does with the block."""
    what, other = piece(language, symbol), piece(language, place.other)
    zh, en = {
        "file": ("整个文件", "the whole file"),
        "start": (f"新文件，先写{_gap(what)}", f"a new file, beginning with {what}"),
        "replace": (f"替换{_gap(what)}", f"replaces {what}"),
        "after": (f"新增 {what}，放在 {other} 之后", f"new: {what}, after {other}"),
        "before": (f"新增 {what}，放在 {other} 之前", f"new: {what}, before {other}"),
        "below": (f"新增 {what}，写在 {other} 的下一行", f"new: {what}, on the line below {other}"),
        "above": (f"新增 {what}，写在 {other} 的上一行", f"new: {what}, on the line above {other}"),
        "same": (f"{what or '整个文件'}，没有改动", f"{what or 'the whole file'}, unchanged"),
        "again": (f"{what or '整个文件'}，如上", f"{what or 'the whole file'}, as above"),
    }[place.act]
    return f"{path} · {say(language, zh, en)}"


def _gap(what: str) -> str:
    """Chinese sets a space before a word in Latin letters."""
    return what if what == "文件开头" else f" {what}"


def removal(language: str, path: str, symbol: str) -> str:
    """The title of a removal."""
    if not symbol:
        return say(language, f"{path} · 删除整个文件", f"{path} · delete the file")
    what = piece(language, symbol)
    return say(language, f"{path} · 删除 {what}", f"{path} · delete {what}")


def page_links(repository: str, language: str, name: str) -> str:
    """The line under every page: where to edit it, where to say that something is wrong."""
    source = f"docs/{language}/{name}.md"
    edit = f"{repository}/edit/main/{source}"
    issue = f"{repository}/issues/new?title={source}%3A%20"
    links = say(
        language,
        f"[编辑这一页]({edit}) · [指出这一页的问题]({issue})",
        f"[Edit this page]({edit}) · [Report a problem with this page]({issue})",
    )
    return f"{links}\n{{ .page-links }}"
