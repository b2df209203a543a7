"""Which requests get a row and pages, and how much of their prompts a step computes."""

from __future__ import annotations

import torch

from minisgl.core import Req
from minisgl.kvcache.manager import CacheManager
from minisgl.kvcache.radix_tree import RadixTree
from minisgl.scheduler.lifecycle import State
from minisgl.scheduler.request import Request
from minisgl.scheduler.table import TableManager

# A second pass costs at least one reading of the weights, about as long as this many tokens of a
# prompt take (bench/ch10_sharing.json): for fewer, waiting does not pay.
MIN_SHARED_TOKENS = 32


class PrefillManager:
    """The requests in the states WAITING and PREFILL, each kind in the order of arrival."""

    def __init__(self, table: TableManager, cache: CacheManager, page_size: int) -> None:
        self._table = table
        self._cache = cache
        self._page_size = page_size
        self.waiting: dict[int, Request] = {}  # by uid, as the others
        self.running: dict[int, Request] = {}

    def schedule(self, num_tokens: int) -> list[Request]:
        """Whose prompts are computed, up to `device_len`: no more than `num_tokens` tokens in all.

        First come, first served, while tokens, rows and pages last; where only the tokens do not,
        the rest of a prompt follows in the next steps. Nobody overtakes a request that does not
        fit, or it might wait for ever. A request whose prompt begins like another one of this
        step stands back until that one's KV is in the cache: then it computes only the rest.
        """
        prompts = RadixTree(self._page_size)
        chosen = []
        for request in [*self.running.values(), *self.waiting.values()]:
            ids = request.input_ids
            if request.state is State.WAITING:
                shared = prompts.match(ids[:-1]).cached_len
                if shared >= MIN_SHARED_TOKENS + self._cache.num_cached_tokens(ids[:shared]):
                    continue
                if not self._admit(request):
                    break
            req = request.req
            req.device_len = min(len(ids), req.cached_len + num_tokens)
            num_tokens -= req.extend_len
            chosen.append(request)
            if not num_tokens:
                break
            prompts.insert(ids, [0] * (len(ids) // self._page_size))  # the pages do not matter
        return chosen

    def _admit(self, request: Request) -> bool:
        """Give a request its row and pages, unless it does not fit beside the others."""
        if not self._table.num_free_rows:
            return False
        table_idx = self._table.allocate()
        # The last token is only ever an output: it needs no place.
        num_tokens = len(request.input_ids) + request.output_len - 1
        handle = self._cache.reserve(table_idx, request.input_ids, num_tokens)
        if handle is None:
            self._table.free(table_idx)
            return False
        request.req = Req(
            input_ids=torch.tensor(request.input_ids, dtype=torch.int32),
            table_idx=table_idx,
            cached_len=handle.cached_len,
            output_len=request.output_len,
            uid=request.uid,
            sampling_params=request.sampling_params,
            cache_handle=handle,
        )
        request.num_cached_tokens = handle.cached_len
        self._table.token_pool[table_idx, : len(request.input_ids)] = request.req.input_ids
        request.move(State.PREFILL)
        self.running[request.uid] = request
        del self.waiting[request.uid]
        return True
