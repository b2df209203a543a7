"""The language in which the tools speak: Chinese or English."""

from __future__ import annotations

import os


def language() -> str:
    """`"zh"` or `"en"`: MINISGL_LANG, else the locale.

    A locale of another language than Chinese means English; none, C and POSIX mean Chinese, the
    book's first language.
    """
    return "zh" if is_a_guess() or _code().startswith("zh") else "en"


def is_a_guess() -> bool:
    """Whether nothing says which language the reader wants."""
    return _code() in ("c", "posix")


def _code() -> str:
    names = (os.environ.get(name, "") for name in ("MINISGL_LANG", "LC_ALL", "LC_MESSAGES", "LANG"))
    return next((name for name in names if name), "C").partition(".")[0].lower()


def tr(zh: str, en: str) -> str:
    """The one of the two texts that the reader's language asks for."""
    return zh if language() == "zh" else en
