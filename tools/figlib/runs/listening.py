"""Running an example of the step's tree, and hearing what it calls."""

import contextlib
import os
import runpy
import sys
from collections.abc import Callable
from typing import Any

Trace = dict[str, Any]


class Enough(BaseException):
    """Ends an example where what follows is of no interest here."""


def run_example(name: str) -> dict[str, Any]:
    """Run a main of the tree; its names, or none where it was ended by `Enough`."""
    argv, sys.argv = sys.argv, [name]
    try:
        path = os.path.join(os.environ["MINISGL_TREE"], "examples", f"{name}.py")
        with contextlib.suppress(Enough):
            return runpy.run_path(path, run_name="__main__")
        return {}
    finally:
        sys.argv = argv


def example() -> Any:
    """The example that is running, for its names."""
    return sys.modules["__main__"]


def listen(owner: Any, method: str, listener: Callable[..., None]) -> None:
    """Call `listener(result, *arguments)` after each call of a method."""
    original = getattr(owner, method)

    def heard(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        listener(result, *args, **kwargs)
        return result

    setattr(owner, method, heard)


def without_model() -> None:
    """End the example at the point where it would load the model."""
    from minisgl import llm

    def enough(*_: object, **__: object) -> None:
        raise Enough

    setattr(llm, "LLM", enough)  # noqa: B010  (assigning to a class is what a type checker forbids)
