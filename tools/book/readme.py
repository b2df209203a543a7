"""Figures in the READMEs: `35.7 ×<!--{{ ch05_kv_cache[length=1024].ratio \\| .1f }} ×-->`.

A README is read as it is, so a figure stands there as text. The comment after it says which
record it comes from, and the check that both agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.book.errors import BookError, Fault
from tools.book.sources import Sources
from tools.book.values import EXPRESSION, evaluate
from tools.lang import tr

NAMES = {"README.md": "en", "README.zh.md": "zh"}
SOURCE = re.compile(r"<!--(.*?\{\{.*?)-->")


def readme_faults(sources: Sources) -> Iterator[Fault]:
    """Every figure that is not what its record says."""
    for name, language in NAMES.items():
        path = sources.root / name
        lines = path.read_text("utf-8").split("\n") if path.is_file() else []
        for number, line in enumerate(lines, 1):
            for found in SOURCE.finditer(line):
                try:
                    wanted = _expanded(sources, language, found[1])
                except BookError as error:
                    yield Fault(name, number, str(error))
                    continue
                if not line[: found.start()].endswith(wanted):
                    text = tr(f"记录里是 {wanted}：改过来", f"the record says {wanted}: write that")
                    yield Fault(name, number, text)


def _expanded(sources: Sources, language: str, template: str) -> str:
    # In a table a bar inside a cell is escaped.
    template = template.replace("\\|", "|")
    return EXPRESSION.sub(lambda one: evaluate(sources, language, one[1]), template)
