"""Steps as a library: which files make up a chapter, and what changed from the one before.

Standard library only. The command is `tools/steps.py`; the judge and the book use this directly.
"""

from .build import assemble, build, package_files, retirements
from .difference import changed_lines, unified
from .errors import StepError
from .manifest import Book, Step, load_steps
from .results import proved
from .stubs import changed_functions, stub_source
from .symbols import Symbol, symbol_source
from .tree import Version, marks, render_tree, tree

__all__ = [
    "Book",
    "Step",
    "StepError",
    "Symbol",
    "Version",
    "assemble",
    "build",
    "changed_functions",
    "changed_lines",
    "load_steps",
    "marks",
    "package_files",
    "proved",
    "render_tree",
    "retirements",
    "stub_source",
    "symbol_source",
    "tree",
    "unified",
]
