"""Which requests decode in a step."""

from __future__ import annotations

from minisgl.scheduler.request import Request


class DecodeManager:
    """The requests in state DECODE, in the order in which they came to it."""

    def __init__(self) -> None:
        self.running: dict[int, Request] = {}  # by uid

    def schedule(self) -> list[Request]:
        """All of them: each has its row and its pages, so nobody need stand back."""
        return list(self.running.values())
