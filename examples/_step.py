"""The first import of every example: run on the right step, speak the right language.

An example runs on the tree that MINISGL_TREE names (a built step, a reader's workspace). Without
it, the step whose manifest names the example as its main is built and used.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODEL_NAME = "SmolLM2-135M-Instruct"


def tr(zh: str, en: str) -> str:
    """Return the text in the reader's language.

    MINISGL_LANG decides, else the locale; no locale (or C, POSIX) means Chinese.
    """
    for name in ("MINISGL_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name, "")
        if value:
            code = value.split(".")[0].lower()
            return zh if code in ("c", "posix") or code.startswith("zh") else en
    return zh


def measured(value: float, fmt: str = ".1f") -> str:
    """Format a figure that differs between machines, such as `≈12.3`.

    The comparison of recorded output skips what follows the sign up to the next space.
    """
    return f"≈{value:{fmt}}"


def model_dir() -> Path:
    """Return the real model's folder: MINISGL_MODEL, else what `tools/fetch_model.py` made.

    Exits with one line when there is none.
    """
    home = os.environ.get("MINISGL_HOME") or "~/.cache/minisgl"
    folder = Path(os.environ.get("MINISGL_MODEL") or f"{home}/{MODEL_NAME}")
    folder = Path(os.path.expanduser(folder))  # as it is where there is no home
    if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
        raise SystemExit(
            tr(
                f"{folder} 里没有模型：请先运行 python3 tools/fetch_model.py",
                f"no model in {folder}: run python3 tools/fetch_model.py first",
            )
        )
    return folder


def _tree() -> Path | None:
    """Return the folder whose `minisgl` this process is to import; None: leave it alone."""
    if os.environ.get("MINISGL_TREE"):
        return _named(os.environ["MINISGL_TREE"])
    main = Path(getattr(sys.modules["__main__"], "__file__", None) or "-").resolve()
    if main.parent != ROOT / "examples":
        return None
    if not (ROOT / "tools" / "steplib").is_dir():
        return ROOT
    return _build(main)


def _named(name: str) -> Path:
    # Else Python would go on to a package that is installed, and the example would run on that.
    # The first chapter's tree has examples/ and no package.
    tree = Path(name).resolve()
    if not any((tree / part).is_dir() for part in ("minisgl", "examples")):
        raise SystemExit(
            tr(
                f"MINISGL_TREE 要指向含有 minisgl/ 的文件夹，而 {name} 里没有",
                f"MINISGL_TREE must name a folder that holds minisgl/, {name} has none",
            )
        )
    return tree


def _build(main: Path) -> Path:
    sys.path.insert(0, str(ROOT))
    try:
        from tools.steplib import StepError, build, load_steps
    finally:
        sys.path.remove(str(ROOT))
    try:
        book = load_steps(ROOT)
        owners = [step for step in book if ROOT / step.main == main]
        if not owners:
            raise StepError(f"no step.toml names examples/{main.name} as its main")
        return build(book, owners[-1].number)
    except StepError as error:
        raise SystemExit(f"_step: {error}") from None


def _say_whose(tree: Path) -> None:
    """Tell the reader that an example ran his code: on stderr, the output stays what it is."""
    main = Path(getattr(sys.modules["__main__"], "__file__", None) or "-").resolve()
    if main.parent.name == "examples" and tree.parts[-3:-1] != (".steps", "trees"):
        print(tr(f"运行的是 {tree} 里的代码", f"this runs the code in {tree}"), file=sys.stderr)


_found = _tree()
if _found:
    _say_whose(_found)
    sys.path.insert(0, str(_found))
    # Processes that an example starts run on the same tree.
    os.environ["MINISGL_TREE"] = os.environ["PYTHONPATH"] = str(_found)
