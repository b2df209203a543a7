"""docs/book.toml: what the book says of its pages, columns and chapters to come."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.book.errors import BookError
from tools.book.texts import read_text
from tools.book.words import LANGUAGES, Text

PATH = "docs/book.toml"


@dataclass(frozen=True)
class NotShown:
    """Lines of a chapter that its page leaves to the page of the whole change, and why."""

    path: str
    symbol: str
    why: Text


@dataclass(frozen=True)
class PageFacts:
    """How long a page takes and how hard it is, 1 to 3."""

    minutes: int
    level: int
    not_shown: tuple[NotShown, ...] = ()


@dataclass(frozen=True)
class Column:
    """The title of a column of bench records and, where it has one, its format."""

    title: Text
    format: str = ""


@dataclass(frozen=True)
class Stretch:
    """A chapter on the road: what limits the one before, what it adds, what proves it.

    `title` and `part` are those of the manifest where the chapter is written.
    """

    chapter: int
    limit: Text
    ability: Text
    proof: Text
    title: Text | None = None
    part: int | None = None


@dataclass(frozen=True)
class Settings:
    """All of docs/book.toml."""

    pages: dict[str, PageFacts] = field(default_factory=dict)
    columns: dict[str, Column] = field(default_factory=dict)
    parts: dict[int, Text] = field(default_factory=dict)
    road: tuple[Stretch, ...] = ()

    def hidden(self, page: str) -> tuple[NotShown, ...]:
        """What a page leaves to the page of the whole change."""
        return self.pages[page].not_shown if page in self.pages else ()


def load_settings(root: Path) -> Settings:
    """Read docs/book.toml; BookError, one line, for the first fault in it."""
    try:
        data = tomllib.loads(read_text(root, PATH))
    except tomllib.TOMLDecodeError as error:
        raise BookError(*[f"{PATH}: {error}"] * 2) from None
    _keys(data, "", optional={"pages", "columns", "parts", "road"})
    pages = _table(data.get("pages", {}), "pages")
    columns = _table(data.get("columns", {}), "columns")
    return Settings(
        pages={name: _page(entry, f"pages.{name}") for name, entry in pages.items()},
        columns={name: _column(entry, f"columns.{name}") for name, entry in columns.items()},
        parts={entry["number"]: _part(entry) for entry in _entries(data, "parts", "number")},
        road=tuple(_stretch(entry) for entry in _entries(data, "road", "chapter")),
    )


def _entries(data: dict[str, Any], name: str, key: str) -> list[dict[str, Any]]:
    """The tables under `[[name]]`, each with an integer of its own as `key`."""
    found = data.get(name, [])
    numbers = [one.get(key) if isinstance(one, dict) else None for one in _list(found, name)]
    for number in numbers:
        if type(number) is not int or numbers.count(number) > 1:
            raise _fault(
                name,
                f"{key} 是整数，不能重复，这里是 {number!r}",
                f"`{key}` is an integer, once, here it is {number!r}",
            )
    return found


def _fault(where: str, zh: str, en: str) -> BookError:
    where = f"{PATH} [{where}]" if where else PATH
    return BookError(f"{where}: {zh}", f"{where}: {en}")


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _fault(where, "应是一张表", "must be a table")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _fault(where, f"应是 [[{where}]]", f"must be [[{where}]]")
    return value


def _keys(
    entry: Any, where: str, needed: set[str] | None = None, optional: set[str] | None = None
) -> None:
    needed, optional = needed or set(), optional or set()
    _table(entry, where)
    for key in sorted(needed - set(entry)):
        raise _fault(where, f"缺少 {key}", f"`{key}` is missing")
    for key in sorted(set(entry) - needed - optional):
        raise _fault(where, f"不认识 {key}", f"unknown key `{key}`")


def _text(value: Any, where: str) -> Text:
    if (
        not isinstance(value, dict)
        or set(value) != set(LANGUAGES)
        or not all(isinstance(one, str) and one.strip() for one in value.values())
    ):
        raise _fault(where, '应是 { zh = "…", en = "…" }', 'must be { zh = "…", en = "…" }')
    return value


def _page(entry: Any, where: str) -> PageFacts:
    _keys(entry, where, {"minutes", "level"}, {"not_shown"})
    minutes, level = entry["minutes"], entry["level"]
    if type(minutes) is not int or minutes < 1 or type(level) is not int or not 1 <= level <= 3:
        raise _fault(
            where,
            "minutes 是正整数，level 是 1、2 或 3",
            "`minutes` is a positive integer, `level` 1, 2 or 3",
        )
    hidden = []
    for one in _list(entry.get("not_shown", []), f"{where}.not_shown"):
        _keys(one, f"{where}.not_shown", {"path", "symbol", "why"})
        hidden.append(
            NotShown(str(one["path"]), str(one["symbol"]), _text(one["why"], f"{where}.not_shown"))
        )
    return PageFacts(minutes, level, tuple(hidden))


def _column(entry: Any, where: str) -> Column:
    _keys(entry, where, set(LANGUAGES), {"format"})
    title = _text({key: entry[key] for key in LANGUAGES}, where)
    return Column(title, str(entry.get("format", "")))


def _part(entry: dict[str, Any]) -> Text:
    _keys(entry, "parts", {"number", "title"})
    return _text(entry["title"], "parts")


def _stretch(entry: dict[str, Any]) -> Stretch:
    _keys(entry, "road", {"chapter", "limit", "ability", "proof"}, {"title", "part"})
    where = f"road, chapter {entry['chapter']}"
    texts = {
        key: _text(entry[key], where)
        for key in ("title", "limit", "ability", "proof")
        if key in entry
    }
    if type(entry.get("part", 0)) is not int:
        raise _fault(where, "part 是整数", "`part` is an integer")
    return Stretch(chapter=entry["chapter"], part=entry.get("part"), **texts)
