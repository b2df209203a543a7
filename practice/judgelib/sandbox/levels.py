"""Which level of the ladder this machine gives, and why not more."""

import functools

from practice.judgelib.sandbox import bubblewrap, landlock, seccomp
from practice.judgelib.text import JudgeError, Text

LEVELS = (3, 2, 0)
# Without these no file can be closed off (Landlock) and no call forbidden (seccomp).
NO_LANDLOCK = Text("内核不提供 Landlock", "the kernel offers no Landlock")
NO_SECCOMP = Text(
    "这台机器装不上 seccomp 过滤器", "no seccomp filter can be installed on this machine"
)


class SandboxError(JudgeError):
    """A box cannot be made or has stopped answering; the message says which and why."""


@functools.cache
def obstacle(level: int) -> Text | None:
    """Return None where this machine gives `level`, else one line that says what is missing."""
    if level == 0:
        return None
    if not seccomp.available():
        return NO_SECCOMP
    if level == 3:
        return bubblewrap.try_out()
    return None if landlock.version() else NO_LANDLOCK


def best() -> int:
    """Return the highest level that this machine gives."""
    return next(level for level in LEVELS if obstacle(level) is None)
