"""Programs that answer nothing and hope to pass: every problem must reject every one of them."""

from __future__ import annotations

import ast

from practice.judgelib import engine
from practice.judgelib.catalogue import Problem
from tools.steplib.source import Function, scopes

# What a function does instead of its work; {first} is its first parameter.
BODIES = {
    "returns None": "return None",
    "returns 0": "return 0",
    "returns its first argument": "return {first}",
    "leaves with exit status 0": "__import__('os')._exit(0)",
    "raises SystemExit(0)": "raise SystemExit(0)",
    "returns an object equal to everything": (
        "return type('Same', (), {{'__eq__': lambda *_: True, '__hash__': lambda _: 0}})()"
    ),
    "returns an int that is equal to everything": (
        "return type('Same', (int,), {{'__eq__': lambda *_: True, '__hash__': lambda _: 0}})(1)"
    ),
    "prints that it passed": "print('{{\"ok\": true}}\\nAC\\nall tests passed')",
}
TOP = {
    "leaves with exit status 0 on import": "import os\n\nos._exit(0)\n",
    "raises SystemExit on import": "raise SystemExit(0)\n",
}


def cheats(problem: Problem) -> dict[str, str]:
    """What each does -> its source, for this problem."""
    if problem.kind == "predict":
        zeros = problem.read("starter.py").replace("= None", "= 0")
        return {
            "answers 0 to all": zeros,
            "answers nothing": "x = 0\n",
            "is a program": TOP["raises SystemExit on import"],
        }
    starter = engine.starter(problem)
    found = {what: text + "\n" + starter for what, text in TOP.items()}
    if problem.step:
        # Future imports come first in a file.
        found = {what: starter + "\n\n" + text for what, text in TOP.items()}
    for what, body in BODIES.items():
        changed = _with_bodies(starter, body)
        if changed != starter:
            found[what] = changed
    return found


def _with_bodies(starter: str, body: str) -> str:
    """The starter with `body` in the place of every NotImplementedError."""
    lines = starter.split("\n")
    for _, node in scopes(ast.parse(starter).body):
        if isinstance(node, Function) and isinstance(node.body[-1], ast.Raise):
            last = node.body[-1]
            if "NotImplementedError" in ast.unparse(last):
                names = [one.arg for one in node.args.args if one.arg != "self"]
                text = body.format(first=names[0] if names else "None")
                lines[last.lineno - 1] = " " * last.col_offset + text
    return "\n".join(lines)
