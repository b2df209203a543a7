"""What a child does to itself before it runs a line of the reader's code."""

import fcntl
import os

from practice.judgelib.sandbox import landlock, privileges, rlimits, seccomp


class Confinement:
    """The lock of one level: prepared once in the keeper, closed in every child."""

    def __init__(self, level: int, read: list[str], listed: list[str], write: list[str]) -> None:
        self.level = level
        self.rules: int | None = None
        # Inside bubblewrap a kernel without Landlock will do: there is nothing else to open.
        if level >= 2 and (level == 2 or landlock.version()):
            rules = landlock.ruleset(read, listed, write)
            # Out of the way of the first numbers, which a child gives to its pipes.
            self.rules = fcntl.fcntl(rules, fcntl.F_DUPFD_CLOEXEC, 16)
            os.close(rules)

    def enter(self, caps: rlimits.Caps) -> None:
        """Confine this process for good; raises OSError where the kernel refuses."""
        rlimits.apply(caps)
        if self.level < 2:
            return
        privileges.drop_all()
        if self.rules is not None:
            landlock.restrict(self.rules)
            os.close(self.rules)
        seccomp.install(os.getpid())

    def keep(self) -> list[int]:
        """Return the file descriptors that a child needs until it has entered."""
        return [] if self.rules is None else [self.rules]
