"""The static stage: what can be said of a submission without running it, with the line.

Nothing here is a wall: the box is. It saves the reader a run, and it says more.
"""

from __future__ import annotations

import ast
import importlib.util
import warnings
from collections.abc import Collection

from practice.judgelib.banned import uses
from practice.judgelib.catalogue import Problem
from practice.judgelib.text import Text
from practice.judgelib.verdict import Code, Verdict
from tools.steplib.source import Function, Scope, scopes, statements

MAX_BYTES = 256 * 1024


class Rejected(Exception):
    """A submission that is not worth running; carries the verdict."""

    def __init__(self, code: Code, zh: str, en: str, line: int = 0) -> None:
        if line:
            zh, en = f"第 {line} 行：{zh}", f"line {line}: {en}"
        super().__init__(en)
        self.verdict = Verdict(code, Text(zh, en), line=line)


def decode(raw: bytes) -> str:
    """The text of a submission; Rejected when it is empty, huge, binary or not UTF-8."""
    if len(raw) > MAX_BYTES:
        limit = f"{MAX_BYTES // 1024} KiB"
        raise Rejected("CE", f"文件太大：最多 {limit}", f"too large: more than {limit}")
    if not raw.strip():
        raise Rejected("CE", "文件是空的", "the file is empty")
    if b"\0" in raw:
        raise Rejected("CE", "这是二进制文件，不是 Python 源码", "a binary file, not Python source")
    try:
        return raw.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = f"0x{raw[error.start]:02x}"
        raise Rejected("CE", f"不是 UTF-8：字节 {byte}", f"not UTF-8: byte {byte}", line) from None


def parse(text: str) -> ast.Module:
    """The syntax tree; Rejected with the line when there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        shown = (error.text or "").strip()[:80]
        shown = f"  {shown}" if shown else ""
        what = f"{error.msg}{shown}"
        line = error.lineno or 1
        raise Rejected("CE", f"语法错误：{what}", f"syntax error: {what}", line) from None
    except (RecursionError, MemoryError):
        raise Rejected("CE", "表达式嵌套太深", "an expression is nested too deeply") from None
    except ValueError as error:
        raise Rejected("CE", f"无法解析：{error}", f"cannot be parsed: {error}") from None


def check(problem: Problem, text: str, reference: str = "", modules: Collection[str] = ()) -> None:
    """Raise Rejected for a missing entry, a wrong signature, a banned name, a missing import.

    `reference` is the step's own file for `engine` and `bug`, `modules` the modules of the tree.
    """
    tree = parse(text)
    _banned(problem, tree)
    if problem.step:
        known, wanted = dict(scopes(tree.body)), dict(scopes(ast.parse(reference).body))
        for symbol in problem.step.symbols:
            _symbol(symbol, known, wanted)
    else:
        _entry(problem, tree)
    _imports(tree, modules)


def _entry(problem: Problem, tree: ast.Module) -> None:
    name, is_class = problem.entry, problem.kind == "ops"
    found: Scope | None = None
    for node in statements(tree.body):
        if isinstance(node, Scope) and node.name == name:
            found = node
        elif not is_class and name in _assigned(node):
            return  # a function by another way; the box will tell
    if found is None or isinstance(found, ast.ClassDef) != is_class:
        what = Text("类", "class") if is_class else Text("函数", "function")
        shown = name if is_class else name + problem.signature
        raise Rejected("CE", f"没有定义{what.zh} {shown}", f"defines no {what.en} {shown}")
    if isinstance(found, ast.ClassDef):
        _methods(problem, found)
    else:
        _same_signature(name, found, _arguments(problem.signature))


def _methods(problem: Problem, found: ast.ClassDef) -> None:
    methods = {node.name: node for node in found.body if isinstance(node, Function)}
    if "__init__" in methods:
        wanted = _arguments(_with_self(problem.signature))
        _same_signature(f"{found.name}.__init__", methods["__init__"], wanted)
    if found.bases:
        return  # methods may come from a base
    for text in problem.methods:
        name, _, rest = text.partition("(")
        if name not in methods:
            zh, en = f"类 {found.name} 没有方法 {text}", f"class {found.name} has no method {text}"
            raise Rejected("CE", zh, en, found.lineno)
        _same_signature(f"{found.name}.{name}", methods[name], _arguments(_with_self("(" + rest)))


def _with_self(signature: str) -> str:
    return "(self, " + signature[1:]


def _arguments(signature: str) -> ast.arguments:
    node = ast.parse(f"def f{signature}: ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    return node.args


def _symbol(symbol: str, known: dict[str, Scope], wanted: dict[str, Scope]) -> None:
    if symbol not in known:
        raise Rejected("CE", f"文件里没有 {symbol}", f"the file has no {symbol}")
    mine, theirs = known[symbol], wanted[symbol]
    if isinstance(mine, Function) and isinstance(theirs, Function):
        _same_signature(symbol, mine, theirs.args)


def _same_signature(name: str, node: Function, wanted: ast.arguments) -> None:
    """Names and kinds of the parameters count; annotations and defaults do not."""
    if _names(node.args) != _names(wanted):
        one, other = f"({', '.join(_names(wanted))})", f"({', '.join(_names(node.args))})"
        zh, en = f"{name} 的参数应为 {one}，现在是 {other}", f"{name} takes {one}, here {other}"
        raise Rejected("CE", zh, en, node.lineno)


def _names(arguments: ast.arguments) -> list[str]:
    found = [one.arg for one in arguments.posonlyargs]
    found += ["/"] if found else []
    found += [one.arg for one in arguments.args]
    if arguments.vararg:
        found.append("*" + arguments.vararg.arg)
    elif arguments.kwonlyargs:
        found.append("*")
    found += [one.arg for one in arguments.kwonlyargs]
    return found + (["**" + arguments.kwarg.arg] if arguments.kwarg else [])


def _assigned(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name for alias in node.names}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _banned(problem: Problem, tree: ast.Module) -> None:
    for banned, line in uses(tree, problem.banned):
        why = problem.banned_reason
        zh, en = f"不允许使用 {banned}：{why.zh}", f"{banned} is not allowed: {why.en}"
        raise Rejected("BAN", zh, en, line)


def _imports(tree: ast.Module, modules: Collection[str]) -> None:
    """Modules imported at the top that are nowhere; those under `try` are the reader's affair."""
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        for name in names:
            top = name.split(".")[0]
            in_tree = top == "minisgl"
            if (in_tree and name not in modules) or (not in_tree and not _exists(top)):
                zh, en = f"没有模块 {name}", f"there is no module {name}"
                if in_tree and modules:
                    zh, en = f"这一步里{zh}", f"{en} in this step"
                raise Rejected("CE", zh, en, node.lineno)


def _exists(top: str) -> bool:
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return False
