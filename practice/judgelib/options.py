"""The command line's grammar: which options each command takes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

WITHOUT_ID = ("list", "status", "doctor", "audit", "serve")


def parser(description: str, commands: Iterable[str]) -> argparse.ArgumentParser:
    """The parser; `command` is None in what it returns for a bare call."""
    found = argparse.ArgumentParser(
        "judge.py", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    under = found.add_subparsers(dest="command", metavar="COMMAND")
    for name in commands:
        _add_options(under.add_parser(name), name)
    return found


def _add_options(one: argparse.ArgumentParser, name: str) -> None:
    if name not in WITHOUT_ID:
        one.add_argument("id")
    if name == "audit":
        one.add_argument("id", nargs="*")
        one.add_argument("--quick", action="store_true", help="one seed, ten mutants")
        one.add_argument("--write", action="store_true", help="bring the samples up to date")
    if name == "serve":
        one.add_argument("--port", type=int, default=8000, help="0: any that is free")
        one.add_argument("--host", default="127.0.0.1", help="a loopback address")
    if name in ("run", "submit"):
        one.add_argument("file", nargs="?", type=Path, metavar="FILE")
        one.add_argument("--json", action="store_true", help="the result as one document")
    if name == "run":
        one.add_argument("--seed", type=int, help="all groups of a seed that a verdict named")
    if name in ("run", "submit", "watch"):
        one.add_argument("--strict", action="store_true", help="a fresh box for every job")
    if name in ("run", "submit", "watch", "audit", "serve"):
        one.add_argument("--level", type=int, choices=(3, 2, 0), help="the sandbox level")
    if name == "start":
        one.add_argument("--again", action="store_true", help="begin anew, keep the old file")
    if name == "solution":
        one.add_argument("--spoil", action="store_true", help="before an AC; recorded")
