"""In which order those who wait are admitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from minisgl.kvcache.manager import CacheManager
from minisgl.scheduler.request import Request

MAX_OVERTAKEN = 16  # admissions of others, after which a request comes first whatever it shares
_NUM_COMPARED = 128  # of those who wait: matching a prompt takes time, and thousands may wait


class Policy(ABC):
    """An order of the waiting requests, which come in the order of arrival."""

    @abstractmethod
    def order(self, waiting: Sequence[Request], cache: CacheManager) -> Sequence[Request]:
        """The same requests, the one to admit first in front."""


class FirstComeFirstServed(Policy):
    """Nobody is overtaken."""

    def order(self, waiting: Sequence[Request], cache: CacheManager) -> Sequence[Request]:
        return waiting


class LongestPrefixMatch(Policy):
    """Whose prompt is cached furthest comes first, before its prefix is evicted.

    Source: Zheng et al., "SGLang: Efficient Execution of Structured Language Model Programs"
    (2024), which proves that this order finds the most hits. It would let a request wait for ever:
    one that was overtaken often enough goes first.
    """

    def order(self, waiting: Sequence[Request], cache: CacheManager) -> Sequence[Request]:
        def rank(request: Request) -> tuple[bool, int]:
            patient = request.num_overtaken < MAX_OVERTAKEN
            return patient, -cache.num_cached_tokens(request.known_ids()) if patient else 0

        compared = sorted(waiting[:_NUM_COMPARED], key=rank)
        return [*compared, *waiting[_NUM_COMPARED:]]


POLICIES: dict[str, type[Policy]] = {"fcfs": FirstComeFirstServed, "lpm": LongestPrefixMatch}
