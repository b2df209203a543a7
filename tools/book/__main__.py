"""The book's own command.

check [PAGE…]       what is wrong, a line each (--coverage: what the chapters show)
replay [PAGE…]      type what the pages show on top of the step before, and compare
build               check everything, then make site/ (--if-needed: only where it is not current)
pdf                 the same, and a PDF of each language in it, printed by Chromium
expand PAGE         a page as plain Markdown (-l en: of the English book)
notebooks [N…]      bring notebooks/ up to date; --run: execute them and compare their output
record [N…]         compare recorded outputs again where their sources changed
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tools.book import notebooks
from tools.book.checks import Checked, check
from tools.book.errors import BookError
from tools.book.expand import expand
from tools.book.pages import load_pages
from tools.book.pdf import print_site
from tools.book.records import record
from tools.book.replaying import replay_pages
from tools.book.site import SITE, build_site, is_current
from tools.book.sources import Sources
from tools.book.words import LANGUAGES
from tools.environment import pipe_may_close, use_environment
from tools.lang import tr
from tools.steplib import StepError

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[[Sources, argparse.Namespace], int]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run one command; 1 where something is wrong, 2 for a wrong command line."""
    options = _parser().parse_args(arguments)
    try:
        with pipe_may_close():
            return COMMANDS[options.command](Sources(root), options)
    except (BookError, StepError) as error:
        print(f"book: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"book: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    summary, _, details = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        "python3 -m tools.book",
        description=summary,
        epilog=details,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    checker = commands.add_parser("check")
    checker.add_argument("pages", nargs="*", metavar="PAGE", help="ch05_kv_cache, or its file")
    checker.add_argument("--coverage", action="store_true", help="print what each chapter shows")
    commands.add_parser("replay").add_argument("pages", nargs="*", metavar="PAGE")
    builder = commands.add_parser("build")
    builder.add_argument("--if-needed", action="store_true", help="only where site/ is not current")
    commands.add_parser("pdf")
    one = commands.add_parser("expand")
    one.add_argument("page")
    one.add_argument("-l", "--language", choices=LANGUAGES, default=LANGUAGES[0])
    converter = commands.add_parser("notebooks")
    converter.add_argument("numbers", nargs="*", type=int, metavar="N")
    converter.add_argument("--run", action="store_true", help="execute them")
    recorder = commands.add_parser("record")
    recorder.add_argument("numbers", nargs="*", type=int, metavar="N")
    recorder.add_argument("--all", action="store_true", help="also where nothing changed")
    return parser


def _names(options: argparse.Namespace) -> list[str]:
    return [Path(name).stem for name in options.pages]


def _check(sources: Sources, options: argparse.Namespace) -> int:
    found = check(sources, _names(options))
    for fault in found.faults:
        print(f"✗ {fault}")
    if options.coverage:
        _print_coverage(found)
    if found.faults:
        print(tr(f"✗ {len(found.faults)} 处要改", f"✗ {len(found.faults)} to put right"))
        return 1
    print(tr(f"✓ {found.pages} 页都没有问题", f"✓ {found.pages} pages, nothing wrong"))
    return 0


def _print_coverage(found: Checked) -> None:
    print(tr("章节    改动行  展示  列出    缺", "chapter  lines  shown  listed  missing"))
    for one in found.coverage:
        part = 100 * one.shown / one.changed if one.changed else 100.0
        print(
            f"{one.step.label:7}{one.changed:7}{one.shown:7}{one.hidden:8}{one.missing:9}"
            f"  {part:5.1f} %"
        )


def _replay(sources: Sources, options: argparse.Namespace) -> int:
    failed = 0
    print(tr("页", "page").ljust(26), tr("块    行  列出", "blocks lines listed"))
    for page, outcome in replay_pages(sources, _names(options)):
        failed += bool(outcome.differences)
        verdict = "✗" if outcome.differences else tr("✓ 逐字节相同", "✓ equal byte for byte")
        print(f"{page.path:26}{outcome.blocks:4}{outcome.lines:6}{outcome.copied:6}  {verdict}")
        for path, difference in outcome.differences.items():
            print(f"{path}\n{difference}")
    return 1 if failed else 0


def _build(sources: Sources, options: argparse.Namespace) -> int:
    if options.if_needed and is_current(sources.root):
        return 0
    found = check(sources)
    for fault in found.faults:
        print(f"✗ {fault}")
    if found.faults:
        return 1
    print(build_site(sources.root))
    return 0


def _pdf(sources: Sources, options: argparse.Namespace) -> int:
    print(build_site(sources.root), flush=True)
    for line in print_site(sources.root / SITE):
        print(line, flush=True)
    return 0


def _expand(sources: Sources, options: argparse.Namespace) -> int:
    wanted = (Path(options.page).stem, options.language)
    for page in load_pages(sources.root):
        if (page.name, page.language) == wanted:
            expanded = expand(sources, page)
            print(expanded.markdown)
            for fault in expanded.faults:
                print(f"✗ {fault}", file=sys.stderr)
            return 1 if expanded.faults else 0
    raise BookError(f"没有页 {options.page}", f"there is no page {options.page}")


def _notebooks(sources: Sources, options: argparse.Namespace) -> int:
    for path in notebooks.write(sources):
        print(tr(f"更新 {path}", f"updated {path}"))
    if options.run:
        for line in notebooks.run(sources, options.numbers):
            print(line, flush=True)
    return 0


def _record(sources: Sources, options: argparse.Namespace) -> int:
    for line in record(sources, options.numbers, options.all):
        print(line, flush=True)
    return 0


COMMANDS: dict[str, Command] = {
    "check": _check,
    "replay": _replay,
    "build": _build,
    "pdf": _pdf,
    "expand": _expand,
    "notebooks": _notebooks,
    "record": _record,
}


if __name__ == "__main__":
    use_environment(ROOT, "jupytext")
    sys.exit(main())
