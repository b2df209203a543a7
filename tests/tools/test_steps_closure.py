"""What a file leads to: a result is known by the hash of all that its run may have read."""

import pytest

from tools.steplib.closure import closure

FRONT = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minisgl.stack import stack_of


def __getattr__(name):
    from minisgl.stack import stack_of

    return {"stack_of": stack_of}[name]
"""
FILES = {
    "minisgl/__init__.py": FRONT,
    "minisgl/box.py": "from typing import TYPE_CHECKING\n",
    "minisgl/stack.py": "import minisgl.box\n",
}


@pytest.mark.parametrize(
    ("text", "leads"),
    [
        ("from minisgl.box import Box", False),
        ("from minisgl import stack_of", True),
        ("from minisgl import *", True),
        ("import minisgl.box", True),  # and then, perhaps, minisgl.stack_of
        ("import_module('minisgl.box')", False),
        ("import_module('minisgl.stack')", True),
        ("monkeypatch.setattr('minisgl.stack.stack_of', None)", True),
        ("run([python, '-c', 'from minisgl import stack_of'])", True),
        ("def test():\n    from minisgl.stack import stack_of", True),
        ("if TYPE_CHECKING:\n    from minisgl.stack import stack_of", False),
        ("if typing.TYPE_CHECKING:\n    from minisgl.stack import stack_of", False),
        ("if not TYPE_CHECKING:\n    from minisgl.stack import stack_of", True),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from minisgl.stack import stack_of", True),
    ],
)
def test_a_file_leads_to_what_may_run(text: str, leads: bool) -> None:
    files = {path: source.encode() for path, source in (FILES | {"tests/a.py": text}).items()}
    found = closure(files, ["tests/a.py"])
    assert ("minisgl/stack.py" in found) == leads
    assert found <= set(files)
