"""A server of its own process that can be killed and started again at the same address."""

from pathlib import Path

from serving import Child


class Server:
    """`judge.py serve` for a repository; `kill` it in the end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._child = Child(root)
        self.port = self._child.port
        self.address = self._child.address

    def kill(self) -> None:
        """End it as a power cut would."""
        self._child.kill()

    def restart(self) -> None:
        """Start it again after `kill`."""
        self._child = Child(self.root, "--port", str(self.port))
