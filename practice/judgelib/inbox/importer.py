"""Import modules from texts in memory: a submission needs no file and can leave none."""

import importlib.abc
import importlib.machinery
import io
import linecache
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType


class MemoryFinder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds `a.b` at `a/b.py` or `a/b/__init__.py` of the given texts; a folder is a package."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)

    def install(self) -> None:
        """Look here before anywhere else, and let tracebacks quote the lines."""
        sys.meta_path.insert(0, self)
        for path, text in self._files.items():
            lines = io.StringIO(text).readlines()  # as Python counts them: a form feed ends none
            linecache.cache[path] = (len(text), None, lines, path)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Return where a module is, or None where it is not among the texts."""
        stem = fullname.replace(".", "/")
        place = self._place(fullname)
        folder = any(name.startswith(f"{stem}/") for name in self._files)
        if place is None and not folder:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=place, is_package=folder)
        spec.has_location = place is not None
        return spec

    def get_source(self, fullname: str) -> str:
        """Return a module's text; an empty one for a folder without `__init__.py`."""
        place = self._place(fullname)
        return "" if place is None else self._files[place]

    def get_code(self, fullname: str) -> CodeType:
        """Return a module's compiled text, under the name that tracebacks show."""
        place = self._place(fullname) or fullname
        return compile(self.get_source(fullname), place, "exec", dont_inherit=True)

    def is_package(self, fullname: str) -> bool:
        """Whether a name has modules below it."""
        return any(name.startswith(fullname.replace(".", "/") + "/") for name in self._files)

    def _place(self, fullname: str) -> str | None:
        stem = fullname.replace(".", "/")
        for place in (f"{stem}.py", f"{stem}/__init__.py"):
            if place in self._files:
                return place
        return None
