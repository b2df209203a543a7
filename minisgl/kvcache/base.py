"""What a KV cache offers: places to attention, and pages to requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch


@dataclass(frozen=True, eq=False)
class BaseCacheHandle:
    """What a request holds in the cache. Compared by identity, as requests are."""

    pages: list[int]  # in the order of its tokens
    cached_len: int  # the tokens of its locked prefix, whose pages others read too

    @cached_property
    def is_run(self) -> bool:
        """Whether the pages follow each other in the pool, and so can be read in place."""
        return self.pages == list(range(self.pages[0], self.pages[0] + len(self.pages)))


class BaseKVCachePool(ABC):
    """Keys and values of past tokens, one place per token and layer.

    A place is an integer, the token's location, and is the same in every layer. Whoever forms a
    batch decides the locations of its tokens (`Batch.out_loc`); attention stores what the batch
    brings, then reads what its requests have.
    """

    @abstractmethod
    def k_cache(self, layer_id: int) -> torch.Tensor:
        """The keys of a layer, `[num_locations, num_kv_heads, head_dim]`."""

    @abstractmethod
    def v_cache(self, layer_id: int) -> torch.Tensor:
        """The values of a layer, `[num_locations, num_kv_heads, head_dim]`."""

    def store_kv(
        self, k: torch.Tensor, v: torch.Tensor, out_loc: torch.Tensor, layer_id: int
    ) -> None:
        """Keep new keys and values, each `[num_tokens, num_kv_heads, head_dim]`, at `out_loc`."""
        self.k_cache(layer_id)[out_loc] = k
        self.v_cache(layer_id)[out_loc] = v
