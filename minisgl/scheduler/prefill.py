"""Which requests get a row and pages, and how much of their prompts a step computes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from minisgl.core import Req
from minisgl.kvcache.manager import CacheManager
from minisgl.kvcache.radix_tree import RadixTree
from minisgl.scheduler.estimate import LengthEstimate
from minisgl.scheduler.lifecycle import State
from minisgl.scheduler.policy import MAX_OVERTAKEN, Policy
from minisgl.scheduler.request import Request
from minisgl.scheduler.table import TableManager

# A second pass costs at least one reading of the weights, about as long as this many tokens of a
# prompt take (bench/ch10_sharing.json): for fewer, waiting does not pay.
MIN_SHARED_TOKENS = 32


class PrefillManager:
    """The requests in the states WAITING and PREFILL, the first of them in the order of arrival."""

    def __init__(
        self, table: TableManager, cache: CacheManager, page_size: int, policy: Policy
    ) -> None:
        self.estimate = LengthEstimate()
        self._policy = policy
        self._table = table
        self._cache = cache
        self._page_size = page_size
        self.waiting: dict[int, Request] = {}  # by uid, as the others
        self.running: dict[int, Request] = {}

    def schedule(self, num_tokens: int) -> list[Request]:
        """Whose prompts are computed, up to `device_len`: no more than `num_tokens` tokens in all.

        In the order of the policy, while tokens, rows and pages last; where only the tokens do not,
        the rest of a prompt follows in the next steps. Nobody overtakes a request that does not
        fit, or it might wait for ever. A request whose prompt begins like another one of this
        step stands back until that one's KV is in the cache: then it computes only the rest.
        That lets others pass, so whoever was overtaken often enough does not.
        """
        prompts = RadixTree(self._page_size)
        chosen = []
        waiting: Sequence[Request] = []
        if self._table.num_free_rows:
            waiting = self._policy.order([*self.waiting.values()], self._cache)
        for request in [*self.running.values(), *waiting]:
            ids = request.known_ids()
            if request.state is State.WAITING:
                shared = prompts.match(ids[:-1]).cached_len
                worth_it = shared >= MIN_SHARED_TOKENS + self._cache.num_cached_tokens(ids[:shared])
                if worth_it and request.num_overtaken < MAX_OVERTAKEN:
                    continue
                if not self._admit(request, ids):
                    break
            prompts.insert(ids, [0] * (len(ids) // self._page_size))  # the pages do not matter
            req = request.req
            if req.cached_len < len(ids):
                req.device_len = min(len(ids), req.cached_len + num_tokens)
            elif not req.can_decode:  # all is computed; its only token is on its way
                continue
            num_tokens -= req.extend_len
            chosen.append(request)
            if not num_tokens:
                break
        return chosen

    def _admit(self, request: Request, ids: list[int]) -> bool:
        """Give a request, with its known tokens, a row and pages, unless it does not fit."""
        if not self._table.num_free_rows:
            return False
        table_idx = self._table.allocate()
        # The last token is only ever an output: it needs no place.
        num_tokens = len(request.input_ids) + self.estimate.expected_len(request) - 1
        handle = self._cache.reserve(table_idx, ids, num_tokens)
        if handle is None:
            self._table.free(table_idx)
            return False
        if request.num_retractions:
            req = request.req
            req.table_idx, req.cached_len, req.cache_handle = table_idx, handle.cached_len, handle
        else:
            request.req = Req(
                input_ids=torch.tensor(ids, dtype=torch.int32),
                table_idx=table_idx,
                cached_len=handle.cached_len,
                output_len=request.output_len,
                uid=request.uid,
                sampling_params=request.sampling_params,
                cache_handle=handle,
            )
            request.num_cached_tokens = handle.cached_len
        self._table.token_pool[table_idx, : len(ids)] = request.req.input_ids
        request.move(State.PREFILL)
        self.running[request.uid] = request
        del self.waiting[request.uid]
        for other in self.waiting.values():
            other.num_overtaken += other.number < request.number
        return True

    def take_back(self, request: Request) -> None:
        """Let a running request wait again, in the place that its arrival gives it."""
        waiting = [*self.waiting.values(), request]
        self.waiting = {one.uid: one for one in sorted(waiting, key=lambda one: one.number)}
