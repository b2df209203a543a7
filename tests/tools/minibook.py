"""A miniature book of four chapters in a temporary folder, on which the tests try the rules.

ch00 is a script of its own; ch01 brings `box.py`; ch02 rewrites it and adds `stack.py`; ch03
removes `stack.py`, adds `pile.py` and retires the tests of ch02, as ch02 retires one of ch01.
"""

import shutil
import subprocess
from pathlib import Path

from tools.steplib.manifest import load_steps
from tools.steplib.readme import readme

REPOSITORY = Path(__file__).resolve().parents[2]
CARRIED = ("examples/_step.py", "tests/conftest.py")

BOX_1 = '''
"""Boxes."""


class Box:
    """Holds things."""

    def __init__(self) -> None:
        self._things: list[int] = []

    def put(self, thing: int) -> None:
        """Add a thing."""
        # at the end
        self._things.append(thing)

    def take(self) -> int:
        """Remove the first thing."""
        return self._things.pop(0)
'''

BOX_2 = '''
"""Boxes."""


class Box:
    """Holds things."""

    def __init__(self) -> None:
        self._things: list[int] = []

    def put(self, thing: int) -> None:
        """Add a thing."""
        # at the end
        self._things.append(thing)

    def take(self) -> int:
        """Remove the last thing."""
        return self._things.pop()
'''

STACK = '''
"""Stacks."""

from minisgl.box import Box


def stack_of(*things: int) -> Box:
    """Return a box with the things in it."""
    box = Box()
    for thing in things:
        box.put(thing)
    return box
'''

PILE = '''
"""Piles."""

from minisgl.box import Box


class Pile:
    """A box that counts."""

    def __init__(self) -> None:
        self.box = Box()
        self.count = 0

    def add(self, thing: int) -> None:
        """Put a thing on the pile."""
        self.box.put(thing)
        self.count += 1
'''

MAIN = '''
"""Chapter {number}."""

import _step

{body}
'''

FILES = {
    "pyproject.toml": """
[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = ["--strict-markers"]
markers = ["slow: s", "guard: g"]
""",
    "minisgl/__init__.py": '"""The package."""\n',
    "minisgl/box.py": BOX_2,
    "minisgl/pile.py": PILE,
    "steps/ch01_box/minisgl/box.py": BOX_1,
    "steps/ch02_stack/minisgl/stack.py": STACK,
    "examples/ch00_script.py": MAIN.format(
        number=0,
        body='def double(value: int) -> int:\n    """Twice."""\n    return 2 * value\n\n\n'
        'if __name__ == "__main__":\n'
        '    print(_step.tr("两倍", "twice"), double(2), _step.measured(0.5))',
    ),
    "examples/ch01_box.py": MAIN.format(
        number=1,
        body="from minisgl.box import Box\n\nbox = Box()\nbox.put(1)\nprint(box.take())",
    ),
    "examples/ch02_stack.py": MAIN.format(
        number=2,
        body="from minisgl.stack import stack_of\n\nprint(stack_of(1, 2).take())",
    ),
    "examples/ch03_pile.py": MAIN.format(
        number=3,
        body="from minisgl.pile import Pile\n\npile = Pile()\npile.add(7)\n"
        "print(pile.count, pile.box.take())",
    ),
    "tests/helper_of_tests.py": '''
"""Loads the script."""

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[1] / "examples" / "ch00_script.py"


def script():
    spec = importlib.util.spec_from_file_location("ch00_script", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
''',
    "tests/test_ch00_script.py": """
from helper_of_tests import script


def test_double():
    assert script().double(3) == 6
""",
    "tests/test_ch01_box.py": """
import pytest
from minisgl.box import Box


def filled():
    box = Box()
    box.put(1)
    box.put(2)
    return box


def test_takes_the_first():
    assert filled().take() == 1


def test_holds_what_is_put():
    assert sorted([filled().take(), filled().take()]) in ([1, 1], [2, 2])


@pytest.mark.slow
def test_many():
    box = Box()
    for thing in range(1000):
        box.put(thing)
    assert box.take() in (0, 999)


@pytest.mark.guard
def test_is_a_class():
    assert isinstance(Box, type)
""",
    "tests/test_ch02_stack.py": """
from minisgl.stack import stack_of


def test_takes_the_last():
    assert stack_of(1, 2).take() == 2
""",
    "tests/test_ch03_pile.py": """
from minisgl.pile import Pile


def test_counts():
    pile = Pile()
    pile.add(5)
    assert pile.count == 1
""",
}


def manifest(name: str, writes: str = "", removes: str = "", more: str = "") -> str:
    """Return the text of a step.toml."""
    return f"""
part = 1
page = "{name}"
main = "examples/{name}.py"
tests = ["tests/test_{name}.py"]
writes = [{writes}]
removes = [{removes}]
concept = "an idea"
title = {{ zh = "标题 {name}", en = "Title {name}" }}
{more}
"""


RETIRES = """
[[retires]]
test = "tests/test_ch01_box.py::test_takes_the_first"
by = "tests/test_ch02_stack.py::test_takes_the_last"
why = "a box gives the last thing first"
"""

RETIRES_FILE = """
[[retires]]
test = "tests/test_ch02_stack.py"
by = "tests/test_ch03_pile.py::test_counts"
why = "stacks are gone"
"""

MANIFESTS = {
    "ch00_script": manifest("ch00_script"),
    "ch01_box": manifest("ch01_box", '"minisgl/__init__.py", "minisgl/box.py"'),
    "ch02_stack": manifest("ch02_stack", '"minisgl/box.py", "minisgl/stack.py"', "", RETIRES),
    "ch03_pile": manifest("ch03_pile", '"minisgl/pile.py"', '"minisgl/stack.py"', RETIRES_FILE),
}

OUTPUT = {
    "ch00_script": ("两倍 4 ≈0.5\n", "twice 4 ≈0.5\n"),
    "ch01_box": ("1\n", "1\n"),
    "ch02_stack": ("2\n", "2\n"),
    "ch03_pile": ("1 7\n", "1 7\n"),
}


class MiniBook:
    """The folder, with short ways to change it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        """Make a file."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")

    def read(self, path: str) -> str:
        """Return the text of a file."""
        return (self.root / path).read_text("utf-8")

    def replace(self, path: str, old: str, new: str) -> None:
        """Change the one place of a file that reads `old`."""
        text = self.read(path)
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path}"
        self.write(path, text.replace(old, new))

    def append(self, path: str, text: str) -> None:
        """Add to the end of a file."""
        self.write(path, self.read(path) + text)

    def remove(self, path: str) -> None:
        """Delete a file."""
        (self.root / path).unlink()

    def git(self, *arguments: str) -> None:
        """Run git in the folder."""
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", *identity, *arguments]
        subprocess.run(command, cwd=self.root, check=True, capture_output=True)

    def commit(self) -> None:
        """Commit everything."""
        if not (self.root / ".git").exists():
            self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "all")


def make_book(root: Path) -> MiniBook:
    """Write the whole book into `root`, with the real `_step.py`, conftest and tools.

    Its READMEs are recorded too: nothing is left for `check` to find.
    """
    book = MiniBook(root)
    for path, text in FILES.items():
        book.write(path, text.lstrip("\n"))
    for name, text in MANIFESTS.items():
        book.write(f"steps/{name}/step.toml", text)
    for name, (zh, en) in OUTPUT.items():
        book.write(f"steps/{name}/expected.zh.txt", zh)
        book.write(f"steps/{name}/expected.en.txt", en)
    for path in CARRIED:
        book.write(path, (REPOSITORY / path).read_text("utf-8"))
    shutil.copytree(
        REPOSITORY / "tools" / "steplib",
        root / "tools" / "steplib",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("steps.py", "arguments.py", "environment.py", "lang.py", "store.py"):
        shutil.copy(REPOSITORY / "tools" / name, root / "tools" / name)
    loaded = load_steps(root)
    for step in loaded:
        book.write(f"steps/{step.name}/README.md", readme(loaded, step.number))
    return book
