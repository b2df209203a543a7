"""What a problem bans is not there, whichever way a submission comes to it.

Where torch calls an operator it asks its dispatcher, from Python and from C++: there the banned
ones are taken away. A list of the ways to a name would never be complete.
"""

import sys
from types import FunctionType
from typing import Any, NoReturn


def take_away(names: list[str]) -> Any:
    """Let the operators of torch of these names, and its functions in Python, fail when called.

    Returns what they are away by: as long as it lives.
    """
    torch = sys.modules.get("torch")
    if torch is None or not names:
        return None
    library = torch.library.Library("aten", "IMPL")
    for name in names:
        operator = getattr(torch.ops.aten, name, None)
        for overload in operator.overloads() if operator else ():
            full = name if overload == "default" else f"{name}.{overload}"
            library.impl(full, _absent, "CPU")
        function = getattr(torch.nn.functional, name, None)
        if isinstance(function, FunctionType):
            function.__code__ = _absent.__code__
    return library


def _absent(*args: object, **kwargs: object) -> NoReturn:
    raise NotImplementedError("a function that this problem bans")
