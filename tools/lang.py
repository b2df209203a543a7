"""The language in which the tools speak: Chinese or English."""

from __future__ import annotations

import os


def language() -> str:
    """`"zh"` or `"en"`: MINISGL_LANG, else the locale.

    A locale of another language than Chinese means English; none, C and POSIX mean Chinese, the
    book's first language.
    """
    names = (os.environ.get(name, "") for name in ("MINISGL_LANG", "LC_ALL", "LC_MESSAGES", "LANG"))
    locale = next((name for name in names if name), "C")
    code = locale.partition(".")[0].lower()
    return "zh" if code in ("c", "posix") or code.startswith("zh") else "en"


def tr(zh: str, en: str) -> str:
    """The one of the two texts that the reader's language asks for."""
    return zh if language() == "zh" else en
