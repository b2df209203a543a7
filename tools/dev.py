"""Set up the project and run what a developer runs, with nothing but the standard library.

    python3 tools/dev.py demo        environment, model, and three prompts answered
    python3 tools/dev.py test        environment, model, demo, and every check that a push needs
    python3 tools/dev.py check-all   the same from cold caches, the whole audit, and the notebooks
    python3 tools/dev.py book        the book, in both languages, into site/
    python3 tools/dev.py serve       the book with the judge beside it, at one local address
    python3 tools/dev.py doctor      what this machine has, and what to do about what it lacks
    python3 tools/dev.py clean       remove the environment and the caches

The environment is `.venv`. A stamp file in it says what it was made from, so a second run needs no
network, a changed pyproject.toml or constraints.txt brings it up to date, and one that was
interrupted is made again.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `tools` lies in the root

from tools.devlib.doctor import doctor
from tools.devlib.environment import Environment, alone, use_new_python
from tools.devlib.model import fetch_model, stored_model
from tools.devlib.process import Failure, reason, remove
from tools.devlib.stages import Stage, command_stage, pytest_stage, report, run_stages
from tools.environment import pipe_may_close
from tools.lang import tr
from tools.store import tell_language

ROOT = Path(__file__).resolve().parents[1]
CACHES = ("site", ".steps", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache", "build")


def preparation(environment: Environment, torch_index: str | None) -> Stage:
    """The stage that makes or updates the environment."""

    def prepare() -> str:
        with alone(environment.root):
            environment.ensure(torch_index)
        return ""

    return Stage(tr("环境", "environment"), prepare, needed=True)


def model_stage(environment: Environment) -> Stage:
    """The stage that makes or checks the model, and has all later stages use that folder."""

    def fetch() -> str:
        os.environ["MINISGL_MODEL"] = str(fetch_model(environment))
        return ""

    return Stage(tr("模型", "model"), fetch, needed=True)


def demo_stage(environment: Environment) -> Stage:
    """The stage in which the package as it stands answers three prompts."""
    return command_stage(environment, tr("演示", "demo"), "tools/demo.py")


def demo(environment: Environment, torch_index: str | None) -> int:
    """Environment, model, three prompts answered."""
    stages = [preparation(environment, torch_index), model_stage(environment)]
    results = run_stages([*stages, demo_stage(environment)])
    if any(result.failure for result in results):
        return report(results)
    print(tr("接下来：make serve（书和题）", "next: make serve (the book and its problems)"))
    return 0


def book_stage(environment: Environment, *more: str) -> Stage:
    """The stage that checks every page and builds the site."""
    return command_stage(environment, tr("书", "book"), "-m", "tools.book", "build", *more)


def book(environment: Environment, torch_index: str | None) -> int:
    """Environment, then the book."""
    results = run_stages([preparation(environment, torch_index), book_stage(environment)])
    return report(results) if any(result.failure for result in results) else 0


def serve(environment: Environment, torch_index: str | None, port: int) -> int:
    """Environment, the book where it is not current, then the judge, which serves both.

    A book that does not build is reported and keeps nobody from the exercises.
    """
    stages = [preparation(environment, torch_index), book_stage(environment, "--if-needed")]
    results = run_stages(stages)
    if results[0].failure:
        return report(results)
    sys.stdout.flush()
    python = str(environment.python)
    os.chdir(environment.root)
    # In this process's place, so that Ctrl-C and signals reach the server as they are.
    os.execv(python, [python, "practice/judge.py", "serve", "--port", str(port)])


def test(environment: Environment, torch_index: str | None, everything: bool = False) -> int:
    """Every check, the cheap ones first; pytest's closing line is the last line printed."""
    closing: list[str] = []
    notebooks = ("-m", "tools.book", "notebooks", "--run")
    steps = ["tools/steps.py", "check", *(["--all"] if everything else [])]
    audit = ["practice/judge.py", "audit", *([] if everything else ["--quick"])]
    stages = [
        preparation(environment, torch_index),
        command_stage(environment, "ruff check", "-m", "ruff", "check", "."),
        command_stage(environment, "ruff format", "-m", "ruff", "format", "--check", "."),
        command_stage(environment, "bench records", "bench/check.py"),
        command_stage(environment, "mypy", "-m", "mypy"),
        model_stage(environment),
        demo_stage(environment),  # alone here, it finds the weight layouts that the others use
        command_stage(environment, "steps", *steps),
        # Before the book: folders in which Python files are compiled look newer than the site.
        command_stage(environment, "problems", *audit),
        book_stage(environment),
        *([command_stage(environment, "notebooks", *notebooks)] if everything else []),
        pytest_stage(environment, closing),
    ]
    status = report(run_stages(stages))
    for line in closing:
        print(line, flush=True)
    return status


def check_all(environment: Environment, torch_index: str | None) -> int:
    """Everything, from cold caches."""
    for name in CACHES:
        remove(environment.root / name)
    return test(environment, torch_index, everything=True)


def clean(root: Path, model: bool) -> int:
    """Remove what the commands here made; the model only when asked."""
    found = [root / name for name in CACHES] + sorted(root.glob("*.egg-info"))
    for folder, names, _ in os.walk(root):
        found += [Path(folder) / name for name in names if name == "__pycache__"]
        names[:] = [name for name in names if name not in (".git", ".venv", "__pycache__")]
    found.append(root / ".venv")
    stored = stored_model()
    for path in found + (stored if model else []):
        if remove(path) and path.name != "__pycache__":
            print(tr(f"已删除 {path}", f"removed {path}"))
    if stored and not model:
        kept = stored[-1].parent
        print(tr(f"保留 {kept} 里的模型（见 --model）", f"kept the model in {kept} (see --model)"))
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    summary, _, details = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser("dev.py", description=summary, epilog=details)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in ("demo", "test", "check-all", "book", "serve"):
        command = commands.add_parser(name)
        command.add_argument(
            "--torch-index",
            metavar="URL",
            default=os.environ.get("MINISGL_TORCH_INDEX") or None,
            help="package index to take torch from, such as PyTorch's index of CPU wheels "
            "(also: MINISGL_TORCH_INDEX)",
        )
        if name == "serve":
            command.add_argument("--port", type=int, default=8000)
    commands.add_parser("doctor")
    cleaner = commands.add_parser("clean")
    cleaner.add_argument("--model", action="store_true", help="remove the embedded model as well")
    return parser.parse_args(arguments)


@pipe_may_close()
def main(arguments: list[str]) -> int:
    """Run one command and return its exit status. Raises Failure and OSError."""
    options = parse(arguments)
    use_new_python()
    tell_language()
    environment = Environment(ROOT)
    if options.command == "clean":
        return clean(ROOT, options.model)
    if options.command == "doctor":
        return doctor(environment)
    if options.command == "serve":
        return serve(environment, options.torch_index, options.port)
    command = {"book": book, "demo": demo, "test": test, "check-all": check_all}[options.command]
    return command(environment, options.torch_index)


def one_line(error: OSError) -> str:
    """What an error of the file system means for the user."""
    words = {
        errno.ENOSPC: "no space left",
        errno.EROFS: "read-only file system",
        errno.EACCES: "permission denied",
    }
    known = words.get(error.errno or 0)
    return reason(known, Path(error.filename or ROOT)) if known else str(error)


def end(signum: int, frame: object) -> None:
    """Leave as on Ctrl-C, so that the program running now is ended too."""
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, end)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print(tr("\n已中断；重新运行即可继续", "\ninterrupted; run it again to go on"))
        sys.exit(130)
    except Failure as failure:
        print(failure, file=sys.stderr)
    except OSError as error:
        print(one_line(error), file=sys.stderr)
    sys.exit(1)
