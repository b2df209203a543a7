"""All figures: importing the modules of the chapters registers what they draw."""

from __future__ import annotations

import difflib

from . import (
    ch00,
    ch01,
    ch02,
    ch03,
    ch04,
    ch05,
    ch06,
    ch06_page_table,
    ch07,
    ch08,
    ch09,
    ch10,
    ch11,
    ch12,
    ch13,
    ch14,
    overview,
    readme,
)
from .drawing import MAKERS

CHAPTERS = (
    ch00,
    ch01,
    ch02,
    ch03,
    ch04,
    ch05,
    ch06,
    ch06_page_table,
    ch07,
    ch08,
    ch09,
    ch10,
    ch11,
    ch12,
    ch13,
    ch14,
)
MODULES = (readme, overview, *CHAPTERS)


def names() -> list[str]:
    """The names of the figures, in the order of the book."""
    order = [module.__name__ for module in MODULES]
    return sorted(MAKERS, key=lambda name: order.index(MAKERS[name].__module__))


def closest(name: str) -> str:
    """The name that is most like `name`."""
    return difflib.get_close_matches(name, MAKERS, n=1, cutoff=0.0)[0]
