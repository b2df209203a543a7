"""Pages for requests: what is shared, what is free, and the page table that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch

from minisgl.core import Req
from minisgl.kvcache.allocator import PageAllocator
from minisgl.kvcache.radix_tree import RadixHandle, RadixTree


class CacheManager:
    """Owns the rules of ownership: each page is free, or the tree's, or one request's.

    A request reads the tree's pages where its prompt begins like an earlier one, and writes its
    own from there on. What it has computed goes to the tree, after the prefill and at its end.
    """

    def __init__(self, num_pages: int, page_size: int, page_table: torch.Tensor) -> None:
        """`page_table` is the engine's, int32 `[num_rows, max_seq_len]`."""
        self.allocator = PageAllocator(num_pages)
        self.tree = RadixTree(page_size)
        self._page_size = page_size
        self._page_table = page_table

    def match_req(self, input_ids: list[int]) -> RadixHandle:
        """The longest prefix of a prompt that need not be computed again.

        Never the whole prompt: the logits of its last token are what the request came for.
        """
        return self.tree.match(input_ids[:-1])

    def can_allocate(self, num_tokens: int, handle: RadixHandle) -> bool:
        """Whether a request of so many tokens fits, its prefix `handle` being locked already."""
        available = self.allocator.num_free + self.tree.num_evictable
        return self._num_new(num_tokens, handle) <= available

    def allocate(self, req: Req) -> None:
        """Give `req`, whose handle is locked, the pages that its prefix does not bring.

        Evicts prefixes as needed, and writes all locations into its row of the page table.
        """
        handle = _handle(req)
        count = self._num_new(req.max_device_len, handle)
        missing = count - self.allocator.num_free
        if missing > 0:
            self.allocator.free(self.tree.evict(missing))
        pages = handle.pages() + self.allocator.allocate(count)
        self._write(req, 0, pages)

    def cache_req(self, req: Req) -> None:
        """Give what `req` has computed to the tree, in whole pages, and let it read from there.

        Another request may have brought the same tokens meanwhile. Then the tree keeps that copy:
        `req` is pointed to it and its own pages are freed, never the one without the other.
        """
        old, size = _handle(req), self._page_size
        num_pages = req.cached_len // size
        ids = req.input_ids[: num_pages * size].tolist()
        pages = self._pages(req)[:num_pages]
        known = self.tree.insert(ids, pages)
        new = req.cache_handle = self.tree.match(ids)
        self.tree.lock(new)
        self.tree.unlock(old)
        first = old.cached_len // size
        self._write(req, first, new.pages()[first:known])
        self.allocator.free(pages[first:known])

    def free(self, req: Req) -> None:
        """Let `req` go: its KV stays in the tree for others, its unused pages become free."""
        self.cache_req(req)
        self.allocator.free(self._own_pages(req))
        self.tree.unlock(_handle(req))

    def check_invariants(self, running: Sequence[Req]) -> None:
        """Assert that each page has exactly one owner, and that each lock is a request's.

        `running` are all requests that have pages.
        """
        owned = [self.allocator.free_pages(), self.tree.pages(), *map(self._own_pages, running)]
        pages = sorted(page for owner in owned for page in owner)
        assert pages == list(range(self.allocator.num_pages)), f"pages with 0 or 2 owners: {owned}"
        for req in running:
            shared = _handle(req).pages()
            assert self._pages(req)[: len(shared)] == shared, f"{req!r} does not read {shared}"
        locks = Counter(node for req in running for node in _handle(req).node.path())
        for node in self.tree.nodes():
            assert node.lock_count == locks[node], f"{node.lock_count} locks on {node.pages}"
        locked = sum(len(node.pages) for node in locks)
        assert self.tree.num_locked == locked, f"{locked} pages are locked, not as counted"
        assert self.tree.num_evictable == len(self.tree.pages()) - locked

    def _num_new(self, num_tokens: int, handle: RadixHandle) -> int:
        return -(-num_tokens // self._page_size) - handle.cached_len // self._page_size

    def _pages(self, req: Req) -> list[int]:
        """Every page of a request, the tree's first."""
        starts = self._page_table[req.table_idx, : req.max_device_len : self._page_size]
        return (starts // self._page_size).tolist()

    def _own_pages(self, req: Req) -> list[int]:
        return self._pages(req)[req.cache_handle.cached_len // self._page_size :]

    def _write(self, req: Req, first: int, pages: list[int]) -> None:
        """Let the request's pages from number `first` on lie in `pages`."""
        starts = torch.tensor(pages, dtype=torch.int32)[:, None] * self._page_size
        locations = (starts + torch.arange(self._page_size, dtype=torch.int32)).flatten()
        row = self._page_table[req.table_idx, first * self._page_size : req.max_device_len]
        row[: len(locations)] = locations[: len(row)].to(row.device)


def _handle(req: Req) -> RadixHandle:
    assert isinstance(req.cache_handle, RadixHandle)
    return req.cache_handle
