"""The packages stand on floors, and each imports only from floors below its own."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Lowest first. `minisgl/__init__.py` offers the package to its users: nothing inside imports it.
FLOORS = [
    ["utils"],
    ["core"],
    ["kernel"],
    ["distributed"],
    ["kvcache"],
    ["attention", "layers", "moe"],
    ["models"],
    ["engine", "spec"],
    ["message"],
    ["scheduler", "tokenizer"],
    ["llm", "server"],
    ["__main__", "benchmark"],
    ["__init__"],
]
FLOOR = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}
# The shared objects name what they hold, for type checkers only; no other file may do this.
TYPE_ONLY = {
    "attention": {"BaseAttnBackend", "BaseAttnMetadata"},
    "engine": {"SamplingArgs"},
    "kvcache": {"BaseCacheHandle", "BaseKVCachePool"},
    "moe": {"BaseMoeBackend"},
}


def package_of(module: str) -> str:
    """`minisgl.kvcache.radix` -> `kvcache`; a name that is no package is `minisgl`'s own."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOOR else "__init__"


def imports_of(tree: ast.AST, module: str, is_package: bool) -> list[tuple[ast.AST, str]]:
    """Every `minisgl` module that a file imports, wherever and however it does."""
    found: list[tuple[ast.AST, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level + is_package or None] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found += [(node, f"{base}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = ast.unparse(node.func).split(".")[-1]
            if name in ("import_module", "__import__"):
                found.append((node, str(node.args[0].value)))
    return [(node, name) for node, name in found if name.split(".")[0] == "minisgl"]


def type_only_nodes(tree: ast.AST) -> set[ast.AST]:
    """Everything under an `if TYPE_CHECKING:`."""
    blocks = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    )
    return {node for block in blocks for line in block.body for node in ast.walk(line)}


def violations(package_root: Path) -> list[str]:
    """What stands against the order in a `minisgl` folder, one line each."""
    found = []
    for path in sorted(package_root.rglob("*.py")):
        parts = path.relative_to(package_root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(["minisgl", *(parts[:-1] if is_package else parts)])
        own = parts[0]
        if own not in FLOOR:
            found.append(f"{module}: package {own} has no floor")
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        type_only = type_only_nodes(tree)
        for node, name in imports_of(tree, module, is_package):
            other = package_of(name)
            allowed = TYPE_ONLY.get(other, ()) if own == "core" and node in type_only else ()
            if other != own and FLOOR[other] >= FLOOR[own] and name.split(".")[-1] not in allowed:
                found.append(f"{module}:{getattr(node, 'lineno', 0)} imports {name}")
    return found


def test_the_shipped_package_imports_downwards_only() -> None:
    files = list((ROOT / "minisgl").rglob("*.py"))
    assert files, "no package here"
    assert violations(ROOT / "minisgl") == []


def test_the_stored_versions_import_downwards_only() -> None:
    for step in sorted((ROOT / "steps").glob("ch*/minisgl")):
        assert violations(step) == [], step.parent.name


WRONG = {
    "upwards": ("kvcache/radix.py", "from minisgl.scheduler import Scheduler"),
    "plain import": ("utils/check.py", "import minisgl.core"),
    "sideways": ("layers/linear.py", "import minisgl.moe.base as base"),
    "of a package": ("engine/engine.py", "from minisgl import llm"),
    "relative": ("layers/linear.py", "from ..models.config import ModelConfig"),
    "relative of a package": ("layers/__init__.py", "from .. import models"),
    "deep": ("kvcache/radix/tree.py", "from ...engine import Engine"),
    "late": ("models/weight.py", "def f() -> None:\n    from minisgl.engine import Engine"),
    "by name": ("models/weight.py", "import importlib\nimportlib.import_module('minisgl.llm')"),
    "own front": ("engine/engine.py", "from minisgl import LLM"),
    "type-only elsewhere": (
        "kvcache/base.py",
        "import typing\nif typing.TYPE_CHECKING:\n    from minisgl.engine import Engine",
    ),
    "core, not type-only": ("core.py", "from minisgl.kvcache import BaseCacheHandle"),
    "core, after the type-only block": (
        "core.py",
        "import typing\nif typing.TYPE_CHECKING:\n    pass\nelse:\n"
        "    from minisgl.kvcache import BaseCacheHandle",
    ),
    "core, everything but type-only": (
        "core.py",
        "import typing\nif not typing.TYPE_CHECKING:\n    from minisgl.moe import BaseMoeBackend",
    ),
    "core, another name": (
        "core.py",
        "import typing\nif typing.TYPE_CHECKING:\n    from minisgl.kvcache import RadixCache",
    ),
    "no floor": ("helpers/text.py", ""),
}
RIGHT = {
    "downwards": ("scheduler/table.py", "from minisgl.core import Req\nimport minisgl.kvcache"),
    "to the ground": ("core.py", "from minisgl.utils.check import check_number"),
    "inside": ("layers/linear.py", "from .base import Layer\nfrom minisgl.layers import norm"),
    "package front": ("layers/__init__.py", "from .linear import Linear\nfrom . import norm"),
    "others": ("core.py", "import torch\nfrom minisglang import scheduler"),
    "front of all": ("__init__.py", "from minisgl.llm import LLM\nfrom .core import Req"),
    "type-only of core": (
        "core.py",
        "import typing\nif typing.TYPE_CHECKING:\n    from minisgl.kvcache import BaseCacheHandle",
    ),
}


def planted(folder: Path, name: str, text: str) -> list[str]:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return violations(folder)


@pytest.mark.parametrize("case", WRONG)
def test_an_import_against_the_order_is_found(case: str, tmp_path: Path) -> None:
    assert len(planted(tmp_path, *WRONG[case])) == 1


@pytest.mark.parametrize("case", RIGHT)
def test_an_import_with_the_order_is_left_alone(case: str, tmp_path: Path) -> None:
    assert planted(tmp_path, *RIGHT[case]) == []
