"""Texts in both languages, and the one kind of error that the commands show as a line."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from tools.lang import tr

# How the commands that are printed begin.
COMMAND = "python3 practice/judge.py"


class Text(NamedTuple):
    """A text in Chinese and English; `str()` gives the one for the reader."""

    zh: str
    en: str

    def __str__(self) -> str:
        return tr(self.zh, self.en)


NOTHING = Text("", "")


class JudgeError(Exception):
    """Something the reader or the author of a problem can put right, said in one line."""

    def __init__(self, zh: str, en: str) -> None:
        super().__init__(zh, en)
        self.text = Text(zh, en)

    def __str__(self) -> str:
        return str(self.text)


class _Shown(dict[int, str]):
    """Character -> itself, or its escape where a terminal would obey it instead of showing it."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        plain = character in "\n\t" or character.isprintable()
        plain = plain or unicodedata.category(character) == "Zs"  # the wide space of Chinese texts
        self[code] = character if plain else character.encode("unicode_escape").decode("ascii")
        return self[code]


_SHOWN = _Shown()


def visible(text: str) -> str:
    """The text with control, direction and invisible characters written out, such as `\\x1b`.

    What a submission prints, raises or is called must not move the cursor, turn the line around or
    take the colour of a verdict.
    """
    return text if text.isprintable() else text.translate(_SHOWN)
