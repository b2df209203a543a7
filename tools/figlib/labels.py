"""The words of the figures: one table, Chinese and English side by side."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tools.lang import tr

from .errors import FigureError

TABLE = Path(__file__).with_name("labels.toml")
LANGUAGES = ("zh", "en")

Words = Callable[..., str]


@cache
def table() -> dict[str, dict[str, list[str]]]:
    """Figure -> label -> [Chinese, English], with what a figure takes from elsewhere filled in."""
    try:
        raw = tomllib.loads(TABLE.read_text("utf-8"))
    except ValueError as error:
        raise FigureError(f"{TABLE.name}: {error}") from None
    likes = {name: part.pop("like", "all") for name, part in raw.items()}
    return {name: raw["all"] | raw[likes[name]] | part for name, part in raw.items()}


def words(figure: str, language: str) -> Words:
    """A function from a label's name to its text in `language`; named values are filled in."""
    if language not in LANGUAGES:
        raise FigureError(
            tr(
                f"语言只有 zh 和 en，没有 {language!r}",
                f"the languages are zh and en, not {language!r}",
            )
        )
    own = table().get(figure, {})

    def word(label: str, **values: object) -> str:
        pair = own.get(label)
        if pair is None:
            raise FigureError(
                tr(
                    f"labels.toml 的 [{figure}] 里没有 {label}：请补上中英文",
                    f"[{figure}] of labels.toml has no {label}: add it in both languages",
                )
            )
        return pair[LANGUAGES.index(language)].format(**values)

    return word
