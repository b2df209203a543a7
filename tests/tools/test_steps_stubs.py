"""Stubs, symbols and differences: cut from the source text, never generated anew."""

import ast

import pytest

from tools.steplib import StepError, changed_lines, stub_source, symbol_source
from tools.steplib.difference import code_lines

TRICKY = '''
"""Module docstring."""

from typing import overload

LIMIT = 3  # a constant stays


@overload
def pick(value: int) -> int: ...
@overload
def pick(value: str) -> str: ...
def pick(value):
    # the idea
    return value


def one_line(value: int) -> int: return value + 1


def described() -> str: "Docstring."; return "é"


def long_header(
    first: int,  # the first
    second: str = ")",
) -> dict[str, int]:  # of the header
    """One line."""

    def inner() -> int:
        return first

    return {second: inner()}
    # closing remark


class Shape:
    """A shape."""

    sides: int = 4
    names = {"a": lambda: 1}

    @property
    def area(self) -> float:
        """Its area.

        Two paragraphs.
        """
        return 1.0

    @area.setter
    def area(self, value: float) -> None:
        self._area = value

    @staticmethod
    def unit() -> "Shape":
        return Shape()

    async def draw(self) -> None:
        async with self.pen() as pen:
            await pen.move("""
    text
""")

    def abstract(self) -> None:
        """Nothing to write."""
        raise NotImplementedError

    class Inner:
        def go(self) -> None:
            """Go."""; return None

    def last(self) -> str:
        return "\u2028"
'''

STUBBED = '''
"""Module docstring."""

from typing import overload

LIMIT = 3  # a constant stays


@overload
def pick(value: int) -> int: ...
@overload
def pick(value: str) -> str: ...
def pick(value):
    raise NotImplementedError("chapter 5: pick")


def one_line(value: int) -> int: raise NotImplementedError("chapter 5: one_line")


def described() -> str: "Docstring."; raise NotImplementedError("chapter 5: described")


def long_header(
    first: int,  # the first
    second: str = ")",
) -> dict[str, int]:  # of the header
    """One line."""
    raise NotImplementedError("chapter 5: long_header")


class Shape:
    """A shape."""

    sides: int = 4
    names = {"a": lambda: 1}

    @property
    def area(self) -> float:
        """Its area.

        Two paragraphs.
        """
        raise NotImplementedError("chapter 5: Shape.area")

    @area.setter
    def area(self, value: float) -> None:
        raise NotImplementedError("chapter 5: Shape.area")

    @staticmethod
    def unit() -> "Shape":
        raise NotImplementedError("chapter 5: Shape.unit")

    async def draw(self) -> None:
        raise NotImplementedError("chapter 5: Shape.draw")

    def abstract(self) -> None:
        """Nothing to write."""
        raise NotImplementedError

    class Inner:
        def go(self) -> None:
            """Go."""; raise NotImplementedError("chapter 5: Shape.Inner.go")

    def last(self) -> str:
        raise NotImplementedError("chapter 5: Shape.last")
'''


def test_new_file_loses_every_body_and_nothing_else() -> None:
    assert stub_source(None, TRICKY, "chapter 5") == STUBBED
    ast.parse(STUBBED)


def test_unchanged_functions_stay() -> None:
    assert stub_source(TRICKY, TRICKY, "chapter 5") == TRICKY


def test_docstrings_comments_and_layout_are_no_change() -> None:
    old = TRICKY.replace("Its area.", "How large.").replace("# the idea", "# another")
    old = old.replace("return {second: inner()}", "return {\n        second: inner()\n    }")
    assert stub_source(old, TRICKY, "chapter 5") == TRICKY


def test_only_what_changed_is_taken_out() -> None:
    old = TRICKY.replace("return 1.0", "return 2.0").replace("value + 1", "value + 2")
    stubbed = stub_source(old, TRICKY, "chapter 5")
    assert stubbed.count("NotImplementedError(") == 2
    assert "one_line(value: int) -> int: raise NotImplementedError" in stubbed
    assert "self._area = value" in stubbed


def test_change_of_a_signature_is_a_change() -> None:
    old = "def f(a: int) -> int:\n    return a\n"
    assert "raise" in stub_source(old, old.replace("a: int", "a: int = 1"), "chapter 5")
    assert "raise" in stub_source(old, "@cache\n" + old, "chapter 5")


def test_types_in_a_header_are_none_of_the_readers_work() -> None:
    new = "def f(a: float, *more: int) -> float:\n    return a\n"
    assert stub_source("def f(a, *more) -> int:\n    return a\n", new, "chapter 5") == new
    other = stub_source("def f(a, *more) -> int:\n    return a + 1\n", new, "chapter 5")
    assert other.startswith("def f(a: float, *more: int) -> float:\n    raise")


def test_changed_nested_function_changes_the_outer_one() -> None:
    old = TRICKY.replace("return first", "return -first")
    assert 'NotImplementedError("chapter 5: long_header")' in stub_source(old, TRICKY, "chapter 5")


def test_functions_under_a_condition() -> None:
    text = "try:\n    import a\nexcept ImportError:\n    def f() -> int:\n        return 1\n"
    assert "chapter 5: f" in stub_source(None, text, "chapter 5")


@pytest.mark.parametrize(
    ("symbol", "first", "last"),
    [
        ("LIMIT", "LIMIT = 3", "# a constant stays"),
        ("pick", "@overload", "    return value"),
        ("Shape.area", "    @property", "        self._area = value"),
        ("Shape.sides", "    sides: int = 4", "    sides: int = 4"),
        ("Shape.Inner.go", "        def go", "return None"),
    ],
)
def test_symbol_source(symbol: str, first: str, last: str) -> None:
    found = symbol_source(TRICKY, symbol)
    assert found.text.startswith(first) and found.text.endswith(last)
    assert TRICKY.split("\n")[found.first - 1 : found.last] == found.text.split("\n")


def test_unknown_symbol_names_those_there_are() -> None:
    with pytest.raises(StepError, match=r"has no Square; it has LIMIT, pick, .*Shape"):
        symbol_source(TRICKY, "Square")
    with pytest.raises(StepError, match=r"has no Shape\.corner"):
        symbol_source(TRICKY, "Shape.corner")


def test_changed_lines() -> None:
    assert changed_lines("a\nb\nc\n", "a\nx\nc\nd\n") == {2, 4}
    assert changed_lines("", "a\nb\n") == {1, 2}
    assert changed_lines("a\nb\n", "a\n") == set()


def test_code_lines_leave_out_prose() -> None:
    text = '"""Doc.\n\nMore.\n"""\n\n# why\nA = """\n# text\n"""\n\n\n'
    text += 'def f():\n    "Doc."\n    return A  # a\n'
    assert code_lines(text, "a.py") == ('A = """', "# text", '"""', "def f():", "    return A  # a")
    assert code_lines("// why\n\nint a;\n", "a.cpp") == ("int a;",)
