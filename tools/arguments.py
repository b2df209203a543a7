"""Command lines of many commands, from two tables: the commands, and the arguments they take."""

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

# The commands that take an argument, its name or flag, and what argparse is told of it.
Argument = tuple[str, str, dict[str, Any]]


def parser_of(
    prog: str, description: str, commands: Mapping[str, str], arguments: Iterable[Argument]
) -> argparse.ArgumentParser:
    """A parser in which `command` is None for a bare call; `commands`: name -> what it does."""
    parser = argparse.ArgumentParser(
        prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    under = parser.add_subparsers(dest="command", metavar="COMMAND")
    each = {}
    for name, text in commands.items():
        each[name] = under.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    for names, flag, settings in arguments:
        for name in names.split():
            each[name].add_argument(flag, **settings)
    return parser
