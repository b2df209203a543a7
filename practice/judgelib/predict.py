"""Problems in which the reader predicts a concrete trace: the answer is a file of assignments.

    after_prefill = (6, 7, 1)    # plain values: numbers, texts, True, False, None, lists, tuples
    tokens_computed = 4 + 1      # arithmetic on whole numbers may show the way to an answer

Nothing is run: the file is read as literals. The first wrong answer is named and the right ones are
counted: later answers mostly follow from earlier ones, and who saw all the wrong ones could guess
at every question at once. The right answer is not shown.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from practice.judgelib import show
from practice.judgelib.catalogue import Problem
from practice.judgelib.compare import compare
from practice.judgelib.static import Rejected, parse
from practice.judgelib.text import Text
from practice.judgelib.verdict import Verdict

if TYPE_CHECKING:
    from practice.judgelib.core import Planned

OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
LARGEST = 10**12


def read_answers(text: str) -> dict[str, tuple[Any, int]]:
    """Name -> (value, line) of an answer file; Rejected for anything that is no assignment."""
    found: dict[str, tuple[Any, int]] = {}
    for node in parse(text).body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            target: ast.expr = node.target
            value = node.value
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        else:
            raise _no_answer(node)
        if not isinstance(target, ast.Name):
            raise _no_answer(node)
        try:
            found[target.id] = (_value(value), node.lineno)
        except RecursionError:
            zh, en = "表达式嵌套太深", "an expression is nested too deeply"
            raise Rejected("CE", zh, en, node.lineno) from None
    return found


def _no_answer(node: ast.AST) -> Rejected:
    zh, en = "答案文件里只能有 名字 = 值", "an answer file has only NAME = VALUE"
    return Rejected("CE", zh, en, getattr(node, "lineno", 0))


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return _bounded(node.value, node.lineno) if type(node.value) is int else node.value
    if isinstance(node, ast.List):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_value(item) for item in node.elts)
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = [_value(key) for key in node.keys if key is not None]
        try:
            return dict(zip(keys, map(_value, node.values), strict=True))
        except TypeError:
            raise _no_answer(node) from None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _value(node.operand)
        if type(number) in (int, float):
            return -number
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return _arithmetic(node)
    raise _no_answer(node)


def _arithmetic(node: ast.BinOp) -> int:
    left, right = _value(node.left), _value(node.right)
    if type(left) is not int or type(right) is not int:
        raise _no_answer(node)
    try:
        result = OPERATORS[type(node.op)](left, right)
    except ZeroDivisionError:
        raise Rejected("CE", "除以零", "division by zero", node.lineno) from None
    return _bounded(result, node.lineno)


def _bounded(number: int, line: int) -> int:
    if abs(number) > LARGEST:
        raise Rejected("CE", "数太大", "the number is too large", line)
    return number


def check_form(problem: Problem, text: str) -> Verdict:
    """What `run` says: that the file can be read and how much is filled in, not what is right."""
    answers, fields = _read(problem, text)
    filled = sum(answers.get(name, (None, 0))[0] is not None for name in fields)
    total = len(fields)
    zh = f"{total} 个问题填了 {filled} 个；对了几个，提交后才知道"
    en = f"{filled} of {total} questions are answered; a submission says how many are right"
    return Verdict("AC", Text(zh, en))


def judge_answers(problem: Problem, text: str, planned: Sequence[Planned]) -> Verdict:
    """Compare the answers field by field, in the order of the starter."""
    answers, fields = _read(problem, text)
    expected: dict[str, Any] = {}
    for one in planned:
        expected |= one.expected
    if set(fields) != set(expected):
        both = f"{sorted(expected)} ≠ {sorted(fields)}"
        return Verdict("IE", Text(f"starter.py 与 oracle.py 的字段不同：{both}", f"fields: {both}"))
    right = 0
    wrong: Verdict | None = None
    for name in fields:
        verdict = _field(problem, name, answers, expected[name])
        right += verdict is None
        wrong = wrong or verdict
    if wrong is None:
        return Verdict("AC", cases=len(fields))
    zh = f"{wrong.message.zh}；{len(fields)} 个答案中对了 {right} 个"
    message = Text(zh, f"{wrong.message.en}; {right} of {len(fields)} answers are right")
    return Verdict("WA", message, group=planned[0].group, got=wrong.got, line=wrong.line)


def _read(problem: Problem, text: str) -> tuple[dict[str, tuple[Any, int]], list[str]]:
    """The answers, and the names of the questions; Rejected for an answer to none of them."""
    answers = read_answers(text)
    fields = list(read_answers(problem.read("starter.py")))
    for name, (_, line) in answers.items():
        if name not in fields:
            zh, en = f"没有名为 {name} 的问题", f"there is no question called {name}"
            raise Rejected("CE", zh, en, line)
    return answers, fields


def _field(
    problem: Problem, name: str, answers: dict[str, tuple[Any, int]], expected: Any
) -> Verdict | None:
    value, line = answers.get(name, (None, 0))
    if value is None and expected is not None:
        return Verdict("WA", Text(f"{name} 还没有回答", f"{name} is not answered yet"), line=line)
    found = compare(expected, value, problem.tolerance).difference
    if found is None:
        return None
    what = Text(f"{name} 不对", f"{name} is not right")
    if type(value) is not type(expected):
        what = Text(f"{name}：{found.reason.zh}", f"{name}: {found.reason.en}")
    return Verdict("WA", what, got=show.brief(value), line=line)
