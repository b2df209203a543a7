"""Runs in the box: one test function per case, once for each of its parameters."""

import importlib
import itertools
from collections.abc import Iterator
from typing import Any


def run(case: list[str]) -> int:
    """How often the test ran: a case is [module, function]; what it raises is the answer."""
    module, name = case
    function = getattr(importlib.import_module(module), name)
    marks = getattr(function, "pytestmark", [])
    axes = [list(_values(*mark.args)) for mark in marks if mark.name == "parametrize"]
    count = 0
    for chosen in itertools.product(*axes):
        function(**{key: value for part in chosen for key, value in part.items()})
        count += 1
    return count


def _values(names: Any, rows: Any) -> Iterator[dict[str, Any]]:
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    for row in rows:
        yield dict(zip(names, [row] if len(names) == 1 else row, strict=True))
