"""The static stage: every bad file gets one clear line, with the place in it."""

from pathlib import Path

import pytest
from fakes import TOML, small_problem

from practice.judgelib import engine, static
from practice.judgelib.catalogue import Problem, load_problem
from practice.judgelib.static import MAX_BYTES, Rejected
from practice.judgelib.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]


def verdict_of(problem: Problem, raw: bytes) -> Verdict:
    with pytest.raises(Rejected) as caught:
        static.check(problem, static.decode(raw))
    return caught.value.verdict


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "the file is empty"),
        (b" \n\t\n", "the file is empty"),
        (b"x" * (MAX_BYTES + 1), "too large: more than 256 KiB"),
        (b"\x7fELF\0\0\0", "a binary file, not Python source"),
        ("# 注释\n".encode("gbk"), "line 1: not UTF-8: byte 0xca"),
        (b"x = 1\ny = '\xff'\n", "line 2: not UTF-8: byte 0xff"),
        (b"def f(:\n    pass\n", "line 1: syntax error: invalid syntax  def f(:"),
        (b"x = (1,\n", "line 1: syntax error: '(' was never closed"),
        (b"def total(numbers, start):\nreturn 1\n", "line 2: syntax error: expected an indented"),
        (b"-" * 100_000 + b"1\n", "nested too deeply"),
        (b"x" + b".a" * 50_000, "nested too deeply"),
        (b"x = " + b"9" * 9_000, "syntax error: Exceeds the limit"),
        (b"x = 1\n", "defines no function total(numbers, start)"),
        (b"class total:\n    pass\n", "defines no function total(numbers, start)"),
        (
            b"def total(numbers):\n    pass\n",
            "line 1: total takes (numbers, start), here (numbers)",
        ),
        (b"x = 1\ndef total(a, b): pass\n", "line 2: total takes (numbers, start), here (a, b)"),
        (b"def total(numbers, *start): pass\n", "here (numbers, *start)"),
        (b"import nump\ndef total(numbers, start): pass\n", "line 1: there is no module nump"),
        (b"from minisgl.core import Req\ndef total(numbers, start): pass\n", "no module minisgl"),
    ],
)
def test_bad_files_are_ce_with_a_line(tmp_path: Path, raw: bytes, words: str) -> None:
    verdict = verdict_of(small_problem(tmp_path), raw)
    assert verdict.code == "CE"
    assert words in verdict.message.en and "\n" not in verdict.message.en
    assert verdict.message.zh != verdict.message.en


@pytest.mark.parametrize(
    "body",
    [
        "return sum(numbers, start)",
        "import builtins\n    return builtins.sum(numbers, start)",
        "from builtins import sum as s\n    return s(numbers, start)",
        "f = sum\n    return f(numbers, start)",
    ],
)
def test_banned_names_are_found_however_they_are_reached(tmp_path: Path, body: str) -> None:
    problem = small_problem(tmp_path)
    verdict = verdict_of(problem, f"def total(numbers, start):\n    {body}\n".encode())
    assert verdict.code == "BAN" and verdict.line >= 2
    assert "sum is not allowed: this problem asks you to write it yourself" in verdict.message.en


@pytest.mark.parametrize(
    "text",
    [
        "class C:\n    def __init__(self):\n        super().__init__()\n        self._x = 1\n"
        "def total(numbers, start):\n    return getattr(C(), 'x', start)\n",
        "def total(numbers: list[int], start: int = 0) -> int:\n    return start\n",
        "def sum(x): return 0\ndef total(numbers, start):\n    return sum(numbers)\n",
        "total = lambda numbers, start: start\n",
        "import logging, sys\ndef total(numbers, start):\n    '''sum'''\n    ops = {'sum': 1}\n"
        "    print(ops, file=sys.stderr)\n    return vars(logging)\n",
        "try:\n    import numpy\nexcept ImportError:\n    pass\ndef total(numbers, start): pass\n",
        "\ufeffdef total(numbers, start):\r\n    '''The sum.'''\r\n    return start\r\n",
        "if True:\n    def total(numbers, start): pass\n",
    ],
)
def test_good_files_pass(tmp_path: Path, text: str) -> None:
    static.check(small_problem(tmp_path), static.decode(text.encode()))


def test_a_class_needs_its_methods(tmp_path: Path) -> None:
    toml = TOML.replace('kind = "call"', 'kind = "ops"').replace('"total"', '"Pool"')
    toml = toml.replace('"(numbers, start)"', '"(size)"\nmethods = ["take(n)", "free(pages)"]')
    problem = small_problem(tmp_path, **{"problem.toml": toml})
    good = "class Pool:\n    def __init__(self, size): ...\n    def take(self, n): ...\n"
    free = "    def free(self, pages): ...\n"
    static.check(problem, good + free)
    for text, words in (
        ("def Pool(size): ...\n", "defines no class Pool"),
        (good, "line 1: class Pool has no method free(pages)"),
        (
            good + free.replace("pages", "x"),
            "line 4: Pool.free takes (self, pages), here (self, x)",
        ),
        (good.replace("size", "n") + free, "Pool.__init__ takes (self, size), here (self, n)"),
    ):
        with pytest.raises(Rejected) as caught:
            static.check(problem, text)
        assert words in caught.value.verdict.message.en


def test_an_engine_file_needs_its_symbols_and_their_signatures() -> None:
    problem = load_problem(ROOT / "practice/problems/ch01-req-lengths")
    text, modules = engine.reference(problem), engine.modules_of(problem)
    static.check(problem, text, text, modules)
    for changed, words in (
        (text.replace("def complete_one(self)", "def complete(self)"), "has no Req.complete_one"),
        (text.replace("(self, next_token: ", "(self, token: "), "takes (self, next_token), here"),
        (text + "\nimport minisgl.engine\n", "there is no module minisgl.engine in this step"),
    ):
        assert changed != text
        with pytest.raises(Rejected) as caught:
            static.check(problem, changed, text, modules)
        assert words in caught.value.verdict.message.en
