"""How wide a text is, without a browser: on the safe side for the fonts of the book."""

from __future__ import annotations

import unicodedata

# Ems of DejaVu Sans, the widest of the usual fallbacks; Helvetica and Segoe are a tenth narrower.
_NARROW = dict.fromkeys("iljI|'.,:;!", 0.34) | dict.fromkeys('ftr()[]{}-/ "', 0.42)
_WIDE = dict.fromkeys("mwMW%@", 0.93) | dict.fromkeys("ABCDEFGHKNOPQRUVXYZ&", 0.72)
_SIGNS = dict.fromkeys("→←↑↓↔+−×=≤≥≈<>…", 0.84) | {"·": 0.34, "—": 1.0, "–": 0.5}
_EMS = _NARROW | _WIDE | _SIGNS
_USUAL, _MONO, _BOLD = 0.62, 0.61, 1.1


def text_width(text: str, size: float, *, mono: bool = False, bold: bool = False) -> float:
    """Width of `text` in the units of `size`; Chinese characters are one em each."""
    ems = sum(_ems(char, mono) for char in text)
    return ems * size * (_BOLD if bold and not mono else 1.0)


def _ems(char: str, mono: bool) -> float:
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    return _MONO if mono else _EMS.get(char, _USUAL)


def wrap(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """Lines of at most `width`: broken at spaces, and anywhere between Chinese characters."""
    lines, line = [], ""
    for piece in _pieces(text):
        if line and text_width((line + piece).rstrip(), size, bold=bold) > width:
            lines.append(line.rstrip())
            line = piece.lstrip()
        else:
            line += piece
    return [*lines, line.rstrip()]


def _pieces(text: str) -> list[str]:
    """What may not be broken: a word with its space, a Chinese character with its punctuation."""
    pieces: list[str] = []
    for char in text:
        wide = unicodedata.east_asian_width(char) in "WF"
        closing = char in "，。：；！？、）》」"
        after_wide = bool(pieces) and unicodedata.east_asian_width(pieces[-1][-1]) in "WF"
        opening = bool(pieces) and pieces[-1][-1] in "（《「"
        new = not pieces or pieces[-1].endswith(" ") or wide or (after_wide and char != " ")
        if new and not (pieces and (closing or opening)):
            pieces.append(char)
        else:
            pieces[-1] += char
    return pieces
