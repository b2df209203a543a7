"""The command line's grammar: the commands, and which arguments each takes."""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.arguments import Argument, parser_of

COMMANDS = {
    "list": "the problems, and how far you are with each",
    "show": "the statement of a problem",
    "start": "get the file in which you write",
    "run": "try your file on the samples",
    "submit": "have your file judged; ends with status 0 only when all was right",
    "watch": "judge your file whenever it is saved",
    "hint": "the next hint",
    "solution": "the reference solution, once yours was accepted",
    "status": "what you have done, chapter by chapter",
    "serve": "the same in the browser",
    "doctor": "what the sandbox of this machine holds back",
    "audit": "prove the problems themselves (for authors)",
}
_YES = {"action": "store_true"}
ARGUMENTS: list[Argument] = [
    (
        "show start run submit watch hint solution",
        "id",
        {"metavar": "ID", "help": "the problem: its name, or its number in the list"},
    ),
    ("audit", "id", {"nargs": "*", "metavar": "ID", "help": "problems, else all of them"}),
    ("audit", "--quick", {**_YES, "help": "one seed, ten mutants"}),
    ("audit", "--write", {**_YES, "help": "bring the samples up to date"}),
    ("serve", "--port", {"type": int, "default": 8000, "help": "0: any that is free"}),
    ("serve", "--host", {"default": "127.0.0.1", "help": "a loopback address"}),
    (
        "run submit",
        "file",
        {"nargs": "?", "type": Path, "metavar": "FILE", "help": "another file than your usual one"},
    ),
    ("run submit", "--json", {**_YES, "help": "the result as one document"}),
    ("run", "--seed", {"type": int, "help": "all groups of a seed that a verdict named"}),
    ("run submit watch", "--strict", {**_YES, "help": "a fresh box for every job"}),
    (
        "run submit watch audit serve",
        "--level",
        {"type": int, "choices": (3, 2, 0), "help": "the sandbox level"},
    ),
    ("start", "--again", {**_YES, "help": "start over, keep the old file"}),
    ("solution", "--spoil", {**_YES, "help": "before an AC; recorded"}),
]


def parser(description: str) -> argparse.ArgumentParser:
    """The parser; `command` is None in what it returns for a bare call."""
    return parser_of("judge.py", description, COMMANDS, ARGUMENTS)
