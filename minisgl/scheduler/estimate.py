"""How long an answer will be: what admission goes by, since nobody knows."""

from __future__ import annotations

import math

from minisgl.scheduler.request import Request

_FIRST_GUESS = 0.5
_WEIGHT = 1 / 16  # of one answer: the share follows the traffic of the last few dozen


class LengthEstimate:
    """The share of the tokens that it may generate which a request is expected to generate.

    Few answers are as long as they may be. The share is the average of those that ended lately,
    and moves half the way to 1 whenever a request had to give its pages back because of it.
    """

    def __init__(self) -> None:
        self.share = _FIRST_GUESS

    def expected_len(self, request: Request) -> int:
        """How many output tokens to make room for: what may come, if the guess failed before."""
        if request.num_retractions:
            return request.output_len
        return math.ceil(self.share * request.output_len)

    def ended(self, request: Request) -> None:
        """Learn from a complete answer."""
        self.share += _WEIGHT * (len(request.token_ids) / request.output_len - self.share)

    def failed(self) -> None:
        """Learn that the pages were not enough."""
        self.share = (1 + self.share) / 2
