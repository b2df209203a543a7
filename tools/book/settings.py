"""docs/book.toml: what the book says of its pages, columns and chapters to come."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.book.errors import BookError
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


def load_settings(root: Path) -> Settings:
    """Read docs/book.toml; BookError, one line, for the first fault in it."""
    try:
        data = tomllib.loads((root / PATH).read_text("utf-8"))
    except OSError as error:
        raise BookError(f"{PATH}：{error.strerror}", f"{PATH}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BookError(f"{PATH}：{error}", f"{PATH}: {error}") from None
    _keys(data, "", optional={"pages", "columns", "parts", "road"})
    return Settings(
        pages={
            name: _page(entry, f"pages.{name}") for name, entry in data.get("pages", {}).items()
        },
        columns={
            name: _column(entry, f"columns.{name}")
            for name, entry in data.get("columns", {}).items()
        },
        parts={entry["number"]: _part(entry) for entry in data.get("parts", ())},
        road=tuple(_stretch(entry) for entry in data.get("road", ())),
    )


def _fault(where: str, zh: str, en: str) -> BookError:
    where = f"{PATH} [{where}]" if where else PATH
    return BookError(f"{where}：{zh}", f"{where}: {en}")


def _keys(
    entry: Any, where: str, needed: set[str] | None = None, optional: set[str] | None = None
) -> None:
    needed, optional = needed or set(), optional or set()
    if not isinstance(entry, dict):
        raise _fault(where, "应是一张表", "must be a table")
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
    if type(minutes) is not int or minutes < 1 or level not in (1, 2, 3):
        raise _fault(
            where,
            "minutes 是正整数，level 是 1、2 或 3",
            "`minutes` is a positive integer, `level` 1, 2 or 3",
        )
    hidden = []
    for one in entry.get("not_shown", ()):
        _keys(one, f"{where}.not_shown", {"path", "symbol", "why"})
        hidden.append(
            NotShown(str(one["path"]), str(one["symbol"]), _text(one["why"], f"{where}.not_shown"))
        )
    return PageFacts(minutes, level, tuple(hidden))


def _column(entry: Any, where: str) -> Column:
    _keys(entry, where, set(LANGUAGES), {"format"})
    title = _text({key: entry[key] for key in LANGUAGES}, where)
    return Column(title, str(entry.get("format", "")))


def _part(entry: Any) -> Text:
    _keys(entry, "parts", {"number", "title"})
    return _text(entry["title"], "parts")


def _stretch(entry: Any) -> Stretch:
    _keys(entry, "road", {"chapter", "limit", "ability", "proof"}, {"title", "part"})
    where = f"road, chapter {entry['chapter']}"
    texts = {
        key: _text(entry[key], where)
        for key in ("title", "limit", "ability", "proof")
        if key in entry
    }
    return Stretch(chapter=entry["chapter"], part=entry.get("part"), **texts)
