"""Texts in both languages, and the one kind of error that the commands show as a line."""

from __future__ import annotations

from typing import NamedTuple

from tools.lang import tr


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
