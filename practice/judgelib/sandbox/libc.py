"""The few calls into the C library that Python does not offer."""

import ctypes
import functools
import os
from typing import Any


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def syscall(number: int, *arguments: "int | ctypes._Pointer[Any] | None") -> int:
    """Make a system call; raises OSError as the functions of `os` do."""
    boxed = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    result = _library().syscall(ctypes.c_long(number), *boxed)
    return _checked(result)


def prctl(option: int, *arguments: "int | ctypes._Pointer[Any]") -> int:
    """Call prctl with the unused arguments zero, as it demands; raises OSError."""
    boxed = [ctypes.c_ulong(item) if isinstance(item, int) else item for item in arguments]
    boxed += [ctypes.c_ulong(0)] * (4 - len(boxed))
    return _checked(_library().prctl(ctypes.c_int(option), *boxed))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
