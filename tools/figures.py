"""Draw the figures of the book, record the runs they show, and check that they are up to date.

list                     names of the figures
show NAME [--lang L]     a figure as HTML
record [TRACE…]          run the steps again and write docs/traces (needs torch and the model)
check                    every figure draws, every trace matches its code, the picture is fresh
readme                   write the picture of the READMEs, docs/assets/readme-{light,dark}.svg
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

from tools.environment import pipe_may_close  # noqa: E402  (the root must come first)
from tools.figlib import chapters, drawing, readme, traces  # noqa: E402
from tools.figlib.errors import FigureError  # noqa: E402
from tools.figlib.labels import LANGUAGES  # noqa: E402
from tools.lang import language, tr  # noqa: E402

__all__ = ["FigureError", "names", "render"]


def names() -> list[str]:
    """The names by which pages ask for figures, in the order of the book."""
    return chapters.names()


def render(name: str, language: str, alt: str = "") -> str:
    """A figure as one line of HTML with its pictures as inline SVG.

    `alt` says what can be seen, for those who cannot. The page must load docs/assets/figures.css,
    and live.js where a figure can be stepped through. FigureError: there is no such figure, or
    what it is drawn from is missing or stale.
    """
    if name not in names():
        close = chapters.closest(name)
        raise FigureError(
            tr(
                f"没有名为 {name} 的图，是不是 {close}？全部名字见 python3 tools/figures.py list",
                f"there is no figure {name}, is it {close}? See python3 tools/figures.py list",
            )
        )
    try:
        return drawing.html(name, language, alt)
    except (LookupError, TypeError, ValueError) as error:
        raise FigureError(
            tr(
                f"{name} 画不出来，{error!r}：docs/traces 或 bench 的记录坏了就重新记录",
                f"{name} cannot be drawn, {error!r}: if its record in docs/traces or bench is "
                "damaged, record it again",
            )
        ) from error


@pipe_may_close()
def main(argv: list[str]) -> int:
    """The command; 1 when something is wrong."""
    args = _parse(argv)
    try:
        return _run(args)
    except FigureError as error:
        print(f"✗ {error}", file=sys.stderr)
        return 1


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/figures.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list")
    show = commands.add_parser("show")
    show.add_argument("name")
    show.add_argument("--lang", choices=LANGUAGES, default=language())
    commands.add_parser("record").add_argument("traces", nargs="*", metavar="TRACE")
    commands.add_parser("check")
    commands.add_parser("readme")
    return parser.parse_args(argv)


def _run(args: argparse.Namespace) -> int:
    if args.command == "list":
        print("\n".join(names()))
    elif args.command == "show":
        print(render(args.name, args.lang))
    elif args.command == "record":
        for name in args.traces or traces.RECORDERS:
            print(f"✓ {traces.record(name).relative_to(ROOT)}")
    elif args.command == "readme":
        for path in readme.write():
            print(f"✓ {path.relative_to(ROOT)}")
    else:
        return _check()
    return 0


def _check() -> int:
    found = [fault for fault in map(traces.find_fault, traces.RECORDERS) if fault]
    for name in names():
        for lang in LANGUAGES:
            try:
                render(name, lang)
            except FigureError as error:
                found.append(f"{name}: {error}")
    found += readme.faults()
    for fault in dict.fromkeys(found):
        print(f"✗ {fault}")
    if not found:
        print(tr(f"✓ {len(names())} 张图都是最新的", f"✓ {len(names())} figures are up to date"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
