"""Stands for pytest inside the box: what the tests of the steps use of it, and nothing else."""

import re
from types import SimpleNamespace
from typing import Any


class Placeholder:
    """Anything that only stands in an annotation, such as `pytest.CaptureFixture[str]`."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


def __getattr__(name: str) -> Any:
    return Placeholder


def fixture(*arguments: Any, **options: Any) -> Any:
    """A fixture is left as it is: the tests that run here take none."""
    return arguments[0] if arguments and callable(arguments[0]) else lambda function: function


class _Marks:
    def __getattr__(self, name: str) -> Any:
        def mark(*arguments: Any, **options: Any) -> Any:
            if len(arguments) == 1 and callable(arguments[0]) and not options:
                return arguments[0]

            def put(function: Any) -> Any:
                found = getattr(function, "pytestmark", [])
                new = SimpleNamespace(name=name, args=arguments, kwargs=options)
                function.pytestmark = [*found, new]
                return function

            return put

        return mark


mark = _Marks()


class _Raises:
    def __init__(self, kinds: Any, match: str | None) -> None:
        self.value: Any = None
        self._kinds, self._match = kinds, match

    def __enter__(self) -> "_Raises":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        assert kind is not None, f"nothing raised {self._kinds}"
        if not issubclass(kind, self._kinds):
            return False
        self.value = error
        if self._match is not None:
            assert re.search(self._match, str(error)), f"{error!s} does not match {self._match!r}"
        return True


def raises(kinds: Any, match: str | None = None) -> _Raises:
    """The `with` block must raise one of these."""
    return _Raises(kinds, match)
