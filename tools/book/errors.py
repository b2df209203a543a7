"""What can be wrong with a page, said in one line that names the place and what to do."""

from __future__ import annotations

from typing import NamedTuple

from tools.lang import tr


class BookError(Exception):
    """A fault of a directive or a setting; whoever knows file and line makes a Fault of it."""

    def __init__(self, zh: str, en: str) -> None:
        super().__init__(zh, en)

    def __str__(self) -> str:
        return tr(*self.args)


class Fault(NamedTuple):
    """One thing to put right: `docs/zh/x.md:12: what; fix`."""

    path: str
    line: int  # from 1; 0: the file as a whole
    what: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.what}"
