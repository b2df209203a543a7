"""A miniature book of two chapters in a temporary folder, on which the tests try the generator."""

import json
from pathlib import Path
from shutil import copytree

from tools.book import notebooks
from tools.book.bench import script_hash
from tools.book.checks import SECTIONS
from tools.book.pages import Page
from tools.book.records import PATH as RECORDS
from tools.book.records import source_hash
from tools.book.sources import Sources

REPOSITORY = Path(__file__).resolve().parents[2]

BOX_1 = '''"""Boxes."""

LIMIT = 3
SIZES = (1, 2)


class Box:
    """Holds things."""

    kind = "box"

    def __init__(self) -> None:
        self._things: list[int] = []

    def put(self, thing: int) -> None:
        """Add a thing."""
        self._things.append(thing)

    def peek(self) -> int:
        return self._things[0]


# How many there may be.
def room(box: Box) -> int:
    return LIMIT - len(box._things)
'''

BOX_2 = '''"""Boxes."""

import itertools

LIMIT = 4
WIDTH = 7
SIZES = (1, 2)


class Box:
    """Holds things."""

    kind = "box"
    count = itertools.count()

    def __init__(self) -> None:
        self._things: list[int] = []

    def put(self, thing: int) -> None:
        """Add a thing at the end."""
        self._things.append(thing)

    @property
    def first(self) -> int:
        """The oldest."""
        return self._things[0]

    def take(self) -> int:
        # the oldest first
        return self._things.pop(0)


def width(box: Box) -> int:
    return WIDTH * len(box._things)


# How many there may be.
def room(box: Box) -> int:
    return LIMIT - len(box._things)
'''

STEP = """part = 1
page = "{page}"
main = "examples/{page}.py"
tests = ["tests/test_{page}.py"]
writes = [{writes}]
removes = [{removes}]
concept = "boxes"

[title]
zh = "{zh}"
en = "{en}"
"""

MAIN = '''"""Chapter {number}."""

import _step

from minisgl.box import Box

# a box
box = Box()
box.put({number})


def show() -> None:
    print(_step.tr("里面有", "holds"), box._things, _step.measured(0.5))


show()
'''

SETTINGS = """
[pages.ch01_box]
minutes = 30
level = 1

[pages.ch02_more]
minutes = 45
level = 2

[columns]
size = { zh = "大小", en = "size" }
ms = { zh = "毫秒", en = "ms", format = ".1f" }

[[parts]]
number = 1
title = { zh = "第一部分", en = "Part 1" }

[[road]]
chapter = 1
limit = { zh = "没有盒子", en = "no box" }
ability = { zh = "盒子", en = "boxes" }
proof = { zh = "放得进去", en = "things go in" }

[[road]]
chapter = 2
limit = { zh = "拿不出来", en = "nothing comes out" }
ability = { zh = "先进先出", en = "first in, first out" }
proof = { zh = "测试", en = "a test" }

[[road]]
chapter = 3
part = 1
title = { zh = "更多", en = "More" }
limit = { zh = "甲", en = "a" }
ability = { zh = "乙", en = "b" }
proof = { zh = "丙", en = "c" }
"""

# The page of chapter 2 in either language: every line that the chapter changes, out of order.
PAGE = """# 02 {title}

{lead} {{{{ ch02_speed[size=2].ms | .1f }}}}, [`Box.take`](code:minisgl/box.py:Box.take)

@@facts@@

## A {{#goals}}

## B {{#self-test}}

??? question "?"

    !

## C {{#files}}

@@tree@@

## D {{#idea}}

@@figure ch05_rows alt="{title}"@@

@@figure ch05_recompute alt="{title}"@@

### E {{#predict}}

## F {{#steps}}

@@code minisgl/box.py:Box.take@@

@@removed minisgl/box.py:Box.peek@@
and
@@code minisgl/box.py:Box.first@@

@@code minisgl/box.py:LIMIT@@
and
@@code minisgl/box.py:WIDTH@@

@@code minisgl/box.py:Box.@head@@
and
@@code minisgl/box.py:Box.put@@

@@code minisgl/box.py:width@@
and
@@code minisgl/box.py:@head@@

@@code minisgl/shelf.py@@
and
@@removed minisgl/old.py@@

```python sketch
anything
```
and
## G {{#run}}

@@main show@@

@@output@@

## H {{#official}}

## I {{#tests}}

@@test tests/test_ch02_more.py::test_takes@@

## J {{#four-questions}}

@@table ch02_speed@@

## K {{#exercises}}

## L {{#practice}}

@@problems@@

@@diff@@

## M {{#references}}
"""

FIRST = """# 01 {title}

@@facts@@

@@tree@@

@@figure ch05_rows alt="{title}"@@

@@figure ch05_recompute alt="{title}"@@

@@code minisgl/__init__.py@@

@@code minisgl/box.py@@
and
@@code minisgl/old.py@@

@@output@@

@@test tests/test_ch01_box.py::test_puts@@
""" + "".join(f"\n## {name} {{{{#{name}}}}}\n" for name in SECTIONS)

INDEX = """# {title}

@@status@@

@@roadmap@@
"""

BENCH = "print('measured')\n"


def make_booklet(root: Path) -> Path:
    """Write the book into `root`; its check finds nothing."""
    for path, text in _files().items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    copytree(REPOSITORY / "practice/problems/ch02-rope", root / "practice/problems/ch02-rope")
    bench = {
        "key": "ch02_speed",
        "what": "milliseconds",
        "machine": {"cpu": "abacus", "cores": 1, "memory_gib": 1.0, "os": "none"},
        "versions": {"python": "3.11", "torch": "2"},
        "date": "2026-01-01",
        "script": {
            "path": "bench/ch02_speed.py",
            "sha256": script_hash(root / "bench/ch02_speed.py"),
        },
        "rows": [{"size": 1, "ms": 1.25}, {"size": 2, "ms": 7.75}],
    }
    (root / "bench/ch02_speed.json").write_text(json.dumps(bench), "utf-8")
    settle(root)
    return root


def settle(root: Path) -> None:
    """Bring up to date what is derived: notebooks, and the record of what the outputs came from."""
    sources = Sources(root)
    notebooks.write(sources)
    hashes = {step.label: source_hash(sources, step) for step in sources.book}
    (root / RECORDS).write_text(json.dumps(hashes), "utf-8")


def _files() -> dict[str, str]:
    files = {
        "pyproject.toml": '[project]\nname = "booklet"\n\n[project.urls]\n'
        'Repository = "https://example.org/booklet"\n',
        "examples/_step.py": (REPOSITORY / "examples/_step.py").read_text("utf-8"),
        "tests/conftest.py": "",
        "minisgl/__init__.py": '"""The package."""\n',
        "minisgl/box.py": BOX_2,
        "minisgl/shelf.py": "SHELF = []\n",
        "steps/ch01_box/minisgl/box.py": BOX_1,
        "steps/ch01_box/minisgl/old.py": "OLD = 1\n",
        "docs/book.toml": SETTINGS,
        "bench/ch02_speed.py": BENCH,
        "tests/test_ch01_box.py": "def test_puts():\n    assert True\n",
        "tests/test_ch02_more.py": "def test_takes():\n    # the oldest\n    assert True\n",
        "steps/ch01_box/step.toml": STEP.format(
            page="ch01_box",
            zh="盒子",
            en="Boxes",
            writes='"minisgl/__init__.py", "minisgl/box.py", "minisgl/old.py"',
            removes="",
        ),
        "steps/ch02_more/step.toml": STEP.format(
            page="ch02_more",
            zh="更多",
            en="More",
            writes='"minisgl/box.py", "minisgl/shelf.py"',
            removes='"minisgl/old.py"',
        ),
    }
    for number, name in ((1, "ch01_box"), (2, "ch02_more")):
        files[f"examples/{name}.py"] = MAIN.format(number=number)
        files[f"steps/{name}/expected.zh.txt"] = f"里面有 [{number}] ≈0.5\n"
        files[f"steps/{name}/expected.en.txt"] = f"holds [{number}] ≈0.5\n"
    for language, title, lead in (("zh", "更多", "见"), ("en", "More", "See")):
        files[f"docs/{language}/ch02_more.md"] = PAGE.format(title=title, lead=lead)
        files[f"docs/{language}/ch01_box.md"] = FIRST.format(title=title)
        files[f"docs/{language}/index.md"] = INDEX.format(title=title)
    return files


def change(root: Path, path: str, old: str, new: str) -> None:
    """Replace the first `old` of a file, which must be there."""
    place = root / path
    text = place.read_text("utf-8")
    assert old in text, f"{path} has no {old!r}"
    place.write_text(text.replace(old, new, 1), "utf-8")


def page(root: Path, language: str = "en", name: str = "ch02_more") -> Page:
    """One page as it is now."""
    return Page(language, name, (root / f"docs/{language}/{name}.md").read_text("utf-8"))
