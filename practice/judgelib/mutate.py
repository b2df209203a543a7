"""Automatic mutants: one small change each, made in the text, in the functions that count.

Assertions, docstrings, annotations, decorators, the `strict` of a `zip` and what is raised are left
alone: they say what the code relies on, not what it does.
"""

from __future__ import annotations

import ast
import copy
import random
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tools.steplib.source import Function, docstring_of, scopes

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
N = TypeVar("N", bound=ast.AST)
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
NOTHING = ("None", "False")  # one for the other where only the truth is asked for


@dataclass(frozen=True)
class Mutant:
    """A changed source; `what` names the function and the line before and after."""

    what: str
    source: str


def mutants(text: str, symbols: Collection[str] = ()) -> list[Mutant]:
    """All mutants of a source, or of those functions in it that `symbols` names or holds."""
    found: list[Mutant] = []
    counts: Counter[str] = Counter()
    for name, node in scopes(ast.parse(text).body):
        if isinstance(node, Function) and (not symbols or _is_among(name, symbols)):
            for old, new in _changes(node):
                source = _with(text, old, new)
                what = f"{name}: {_line(text, old)} → {_line(source, old)}"
                counts[what] += 1
                if counts[what] > 1:
                    what += f" #{counts[what]}"
                found.append(Mutant(what, source))
    return found


def sampled(text: str, symbols: Collection[str], most: int, seed: str) -> list[Mutant]:
    """At most so many of them, the same ones for the same seed, in the order of the source."""
    every = mutants(text, symbols)
    if len(every) <= most:
        return every
    chosen = sorted(random.Random(seed).sample(range(len(every)), most))
    return [every[index] for index in chosen]


def _is_among(name: str, symbols: Collection[str]) -> bool:
    return any(name == symbol or name.startswith(symbol + ".") for symbol in symbols)


def _changes(function: Function) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """(node, what to write in its place) for every change in the body of a function."""
    docstring = docstring_of(function)
    todo: list[ast.AST] = [node for node in reversed(function.body) if node is not docstring]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Assert, ast.Raise, ast.ClassDef, ast.JoinedStr)):
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue
        if isinstance(node, ast.expr):
            for changed in _expressions(node):
                yield node, _written(changed)
        elif isinstance(node, ast.stmt):
            for text in _statements(node):
                yield node, text
        children = list(ast.iter_child_nodes(node))
        if _is_negative_number(node):
            children = []  # one constant, not an operator and a constant
        if isinstance(node, Function):
            children = list(node.body)
        if isinstance(node, ast.AnnAssign):
            children = [node.value] if node.value else []
        todo += reversed(children)


def _is_negative_number(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    )


def _written(node: ast.expr) -> str:
    """As text that does not fall apart in the place of another expression."""
    text = ast.unparse(node)
    loose = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.UnaryOp)
    return f"({text})" if isinstance(node, loose) else text


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare):
        for index, op in enumerate(new.ops):
            if type(op) in COMPARED:
                other = COMPARED[type(op)]()
                yield _set(new, "ops", [*new.ops[:index], other, *new.ops[index + 1 :]])
    elif isinstance(new, ast.BinOp) and type(new.op) in CALCULATED:
        yield _set(new, "op", CALCULATED[type(new.op)]())
    elif isinstance(new, ast.BoolOp):
        yield _set(new, "op", ast.Or() if isinstance(new.op, ast.And) else ast.And())
    elif _is_negative_number(new):
        yield ast.Constant(ast.literal_eval(new) + 1)
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, (ast.Not, ast.USub)):
        yield new.operand
    elif isinstance(new, ast.IfExp):
        yield ast.IfExp(new.test, new.orelse, new.body)
    elif isinstance(new, ast.Constant):
        yield from _constants(new)
    elif isinstance(new, ast.Call):
        if isinstance(new.func, ast.Name) and new.func.id in NAMES:
            yield _set(new, "func", ast.Name(NAMES[new.func.id]))
        for index, keyword in enumerate(new.keywords):
            if keyword.arg != "strict":
                yield _set(new, "keywords", new.keywords[:index] + new.keywords[index + 1 :])
    elif isinstance(new, ast.Subscript) and isinstance(new.slice, ast.Slice):
        for bound in ("lower", "upper"):
            if getattr(new.slice, bound) is not None and isinstance(new.ctx, ast.Load):
                yield _set(new, "slice", _set(new.slice, bound, None))
    elif isinstance(new, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        for index, part in enumerate(new.generators):
            if part.ifs:
                parts = list(new.generators)
                parts[index] = _set(part, "ifs", [])
                yield _set(new, "generators", parts)


def _constants(node: ast.Constant) -> Iterator[ast.expr]:
    if type(node.value) is bool:
        yield ast.Constant(not node.value)
    elif type(node.value) is int:
        yield ast.Constant(node.value + 1)
    elif type(node.value) is float:
        yield ast.Constant(node.value * 2 if node.value else 1.0)


def _set(node: N, name: str, value: object) -> N:
    changed = copy.copy(node)
    setattr(changed, name, value)
    return changed


def _statements(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await)):
        yield "pass"
    elif isinstance(node, ast.AugAssign):
        yield "pass"
        if type(node.op) in CALCULATED:
            yield ast.unparse(_set(node, "op", CALCULATED[type(node.op)]()))
    elif isinstance(node, ast.Delete) or _is_kept_state(node):
        yield "pass"
    elif isinstance(node, ast.Break):
        yield "continue"
    elif isinstance(node, ast.Continue):
        yield "break"
    elif isinstance(node, ast.Return) and node.value and ast.unparse(node.value) not in NOTHING:
        yield "return None"


def _is_kept_state(node: ast.stmt) -> bool:
    """An assignment to an attribute or an item; without one to a name nothing would run."""
    return isinstance(node, ast.Assign) and isinstance(
        node.targets[0], (ast.Attribute, ast.Subscript)
    )


def _with(text: str, node: ast.stmt | ast.expr, new: str) -> str:
    data = text.encode().split(b"\n")
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head, tail = data[first][: node.col_offset], data[last][node.end_col_offset :]
    data[first : last + 1] = [head + new.encode() + tail]
    return b"\n".join(data).decode()


def _line(text: str, node: ast.stmt | ast.expr) -> str:
    return text.split("\n")[node.lineno - 1].strip()
