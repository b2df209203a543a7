"""The rules of problem.toml: one clear line for the first thing that is wrong with it."""

from __future__ import annotations

import ast
import re
from typing import Any

KINDS = ("call", "ops", "engine", "bug", "predict")
DIFFICULTIES = ("easy", "medium", "hard")
HINTS = 3

Types = dict[str, tuple[type, ...]]
NUMBER = (int, float)
REQUIRED: Types = {
    "id": (str,),
    "chapter": (int,),
    "kind": (str,),
    "difficulty": (str,),
    "title": (dict,),
    "hints": (dict,),
}
OPTIONAL: Types = {
    "torch": (bool,),
    "entry": (str,),
    "signature": (str,),
    "methods": (list,),
    "tolerance": NUMBER,
    "banned": (list,),
    "banned_reason": (dict,),
    "limits": (dict,),
    "step": (dict,),
    "survivors": (dict,),
}
LIMITS: Types = {"wall_s": NUMBER, "case_s": NUMBER, "memory_mb": (int,), "output_bytes": (int,)}
STEP: Types = {"number": (int,), "path": (str,), "symbols": (list,)}
# Which of entry, signature and step a kind needs; the others it must not have.
NEEDS = {
    "call": {"entry", "signature"},
    "ops": {"entry", "signature"},
    "engine": {"step"},
    "bug": {"step"},
    "predict": set(),
}


def read_settings(data: dict[str, Any], folder: str) -> str:
    """The first fault of a parsed problem.toml as one line; empty when it is well formed."""
    return next(
        (
            wrong
            for rule in (_types, _identity, _texts, _by_kind, _numbers)
            if (wrong := rule(data, folder))
        ),
        "",
    )


def _types(data: dict[str, Any], folder: str) -> str:
    wrong = _table(data, REQUIRED, OPTIONAL)
    wrong = wrong or _prefixed("limits", _table(data.get("limits", {}), {}, LIMITS))
    if "step" in data:
        wrong = wrong or _prefixed("step", _table(data["step"], STEP, {"tests": (list,)}))
    return wrong


def _prefixed(name: str, wrong: str) -> str:
    return f"[{name}] {wrong}" if wrong else ""


def _table(data: dict[str, Any], required: Types, optional: Types) -> str:
    known = {**required, **optional}
    for key in data:
        if key not in known:
            return f"unknown key `{key}`"
    for key in required:
        if key not in data:
            return f"key `{key}` is missing"
    for key, value in data.items():
        if type(value) not in known[key]:
            names = " or ".join(kind.__name__ for kind in known[key])
            return f"`{key}` must be of type {names}, not {type(value).__name__}"
    return ""


def _identity(data: dict[str, Any], folder: str) -> str:
    if data["id"] != folder:
        return f"`id` is {data['id']!r}, the folder is called {folder!r}"
    if not re.fullmatch(rf"ch{data['chapter']:02}-[a-z0-9]+(-[a-z0-9]+)*", data["id"]):
        return f"`id` must be ch{data['chapter']:02}- and small letters, digits and hyphens"
    for key, allowed in (("kind", KINDS), ("difficulty", DIFFICULTIES)):
        if data[key] not in allowed:
            return f"`{key}` is {data[key]!r}, must be one of {', '.join(allowed)}"
    return ""


def _texts(data: dict[str, Any], folder: str) -> str:
    for key in ("title", "banned_reason"):
        if key in data and not _both(data[key], str):
            return f"`{key}` needs a text zh and a text en"
    if not _both(data["hints"], list):
        return "`hints` needs a list zh and a list en"
    for language in ("zh", "en"):
        hints = data["hints"][language]
        if len(hints) != HINTS or not _all_texts(hints):
            return f"`hints.{language}` needs {HINTS} texts, from direction to nearly the answer"
    for key in ("methods", "banned"):
        if not _all_texts(data.get(key, [])):
            return f"`{key}` must be a list of texts, none of them empty"
    if not _all_texts(list(data.get("survivors", {}).values())):
        return "[survivors] gives each mutant its reason, a text"
    return ""


def _both(value: Any, kind: type) -> bool:
    return set(value) == {"zh", "en"} and all(type(v) is kind and v for v in value.values())


def _all_texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) and value.strip() for value in values)


def _by_kind(data: dict[str, Any], folder: str) -> str:
    for key in ("entry", "signature", "step"):
        if key in NEEDS[data["kind"]] and key not in data:
            return f"kind {data['kind']} needs `{key}`"
        if key not in NEEDS[data["kind"]] and key in data:
            return f"kind {data['kind']} has no `{key}`"
    if "methods" in data and data["kind"] != "ops":
        return f"kind {data['kind']} has no `methods`"
    if "entry" in data and not data["entry"].isidentifier():
        return f"`entry` is {data['entry']!r}, not a name"
    signatures = [f"f{data['signature']}"] if "signature" in data else []
    for text in signatures + data.get("methods", []):
        try:
            ast.parse(f"def {text}: ...")
        except SyntaxError:
            return f"{text!r} is not a signature such as f(q, k, v)"
    return _step(data["step"]) if "step" in data else ""


def _step(step: dict[str, Any]) -> str:
    if not re.fullmatch(r"minisgl(/\w+)*/\w+\.py", step["path"]):
        return f"[step] `path` is {step['path']!r}, not a file such as minisgl/core.py"
    if not step["symbols"]:
        return "[step] `symbols` is empty"
    for symbol in step["symbols"]:
        if not isinstance(symbol, str) or not re.fullmatch(r"\w+(\.\w+)*", symbol):
            return f"[step] `symbols`: {symbol!r} is not a name such as Class.method"
    for test in step.get("tests", []):
        if not isinstance(test, str) or not re.fullmatch(r"tests/\w+\.py::\w+", test):
            return f"[step] `tests`: {test!r} is not tests/test_x.py::test_y"
    return ""


def _numbers(data: dict[str, Any], folder: str) -> str:
    for key, value in data.get("limits", {}).items():
        if not 0 < value < 1e9:
            return f"[limits] `{key}` must be > 0, got {value!r}"
    if not 0 < data.get("tolerance", 1.0) <= 1:
        return f"`tolerance` must be > 0 and ≤ 1 (absent means exact), got {data['tolerance']!r}"
    return ""
