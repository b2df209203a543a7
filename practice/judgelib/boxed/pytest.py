"""Stands for pytest inside the box: what the tests of the steps use of it, and nothing else."""

import math
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


def param(*values: Any, **options: Any) -> Any:
    """The values themselves."""
    return values[0] if len(values) == 1 else values


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


class _Approx:
    def __init__(self, value: Any, rel: float | None, abs: float | None) -> None:
        self._value, self._rel, self._abs = value, rel, abs

    def __eq__(self, other: Any) -> bool:
        if isinstance(self._value, (list, tuple)):
            pairs = zip(self._value, other, strict=True)
            return all(_Approx(one, self._rel, self._abs) == two for one, two in pairs)
        rel = 1e-6 if self._rel is None else self._rel
        return math.isclose(self._value, other, rel_tol=rel, abs_tol=self._abs or 1e-12)

    def __hash__(self) -> int:
        raise TypeError("an approximate value has no hash")


def approx(value: Any, rel: float | None = None, abs: float | None = None) -> _Approx:
    """Equal to what is close enough."""
    return _Approx(value, rel, abs)
