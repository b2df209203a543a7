"""Pages for requests: what is shared, what is free, and the page table that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from minisgl.core import Req
from minisgl.kvcache.allocator import PageAllocator
from minisgl.kvcache.base import BaseCacheHandle
from minisgl.kvcache.radix_tree import RadixHandle, RadixTree


@dataclass(frozen=True, eq=False)
class CacheHandle(BaseCacheHandle):
    """The pages of a request, those of its locked prefix first."""

    prefix: RadixHandle


class CacheManager:
    """Keeps track of who owns each page: nobody (it is free), the tree, or one request.

    A request reads the tree's pages where its prompt begins like an earlier one, and writes its
    own from there on. What it has computed goes to the tree, after the prefill and at its end.
    A handle's list says which pages; the page table on the device mirrors it, and is only
    written here.
    """

    def __init__(self, num_pages: int, page_size: int, page_table: torch.Tensor) -> None:
        """`page_table` is the engine's, int32 `[num_rows, max_seq_len]`."""
        self._num_pages = num_pages
        self._page_size = page_size
        self._page_table = page_table
        self.reset()

    def reset(self) -> None:
        """Forget every request and every prefix: all pages are free."""
        self._allocator = PageAllocator(self._num_pages)
        self._tree = RadixTree(self._page_size)

    def num_cached_tokens(self, input_ids: list[int]) -> int:
        """How many of these tokens, from the first on, are cached; asking is a use of them."""
        return self._tree.match(input_ids).cached_len

    def reserve(self, table_idx: int, input_ids: list[int], num_tokens: int) -> CacheHandle | None:
        """Places for `num_tokens` tokens of the request in this row, or None: they do not fit.

        It begins with the longest prefix of its prompt that the tree knows, which is locked for
        it. That is never the whole prompt, since the request needs the logits of its last token.
        """
        prefix = self._tree.match(input_ids[:-1])
        shared = prefix.pages()
        count = -(-num_tokens // self._page_size) - len(shared)
        # Locked first: what the request counts on must not be evicted to make room for it.
        self._tree.lock(prefix)
        own = self._allocate(count, after=shared[-1] if shared else None)
        if own is None:
            self._tree.unlock(prefix)
            return None
        pages = shared + own
        self._write(table_idx, pages)
        return CacheHandle(pages, prefix.cached_len, prefix)

    def grow(self, req: Req) -> bool:
        """Give `req` places for the tokens of its next round; False: there is no page for them."""
        handle = _handle(req)
        count = -(-req.device_len // self._page_size) - len(handle.pages)
        if count > 0:
            more = self._allocate(count, after=handle.pages[-1])
            if more is None:
                return False
            self._write(req.table_idx, more, first=len(handle.pages))
            req.cache_handle = replace(handle, pages=handle.pages + more)
        return True

    def _allocate(self, count: int, after: int | None) -> list[int] | None:
        """Free pages, behind page `after` if it can be; None where there are not so many.

        Prefixes that nobody uses are evicted as needed.
        """
        missing = count - self._allocator.num_free
        if missing > self._tree.num_evictable:
            return None
        if missing > 0:
            self._allocator.free(self._tree.evict(missing))
        return self._allocator.allocate(count, after=after)

    def cache_req(self, req: Req) -> None:
        """Give what `req` has computed to the tree, in whole pages, and let it read from there.

        Another request may have brought the same tokens meanwhile. Then the tree keeps that copy:
        `req` is pointed to it and its own pages are freed, never the one without the other.
        """
        old = _handle(req)
        num_pages = req.cached_len // self._page_size
        ids = req.input_ids[: num_pages * self._page_size].tolist()
        prefix = self._tree.insert(ids, old.pages[:num_pages])
        self._tree.lock(prefix)
        self._tree.unlock(old.prefix)
        shared = prefix.pages()
        pages = shared + old.pages[num_pages:]
        duplicates = [own for own, kept in zip(old.pages, pages, strict=True) if own != kept]
        if duplicates:
            self._write(req.table_idx, pages)
            self._allocator.free(duplicates)
        req.cache_handle = CacheHandle(pages, prefix.cached_len, prefix)

    def free(self, req: Req) -> None:
        """Let `req` go: its KV stays in the tree for others, its unused pages become free."""
        self.cache_req(req)
        self.drop(req)

    def drop(self, req: Req) -> None:
        """Release `req` without keeping its KV: pages that the tree does not have become free."""
        self._allocator.free(self._own_pages(req))
        self._tree.unlock(_handle(req).prefix)

    def check_invariants(self, running: Sequence[Req]) -> None:
        """Assert that each page has exactly one owner, and that each lock is a request's.

        `running` are all requests that have pages.
        """
        owned = [self._allocator.free_pages(), self._tree.pages(), *map(self._own_pages, running)]
        pages = sorted(page for owner in owned for page in owner)
        assert pages == list(range(self._num_pages)), f"pages with 0 or 2 owners: {owned}"
        for req in running:
            shared, pages = _handle(req).prefix.pages(), req.cache_handle.pages
            assert pages[: len(shared)] == shared, f"{req!r} does not read {shared}"
        locks = Counter(node for req in running for node in _handle(req).prefix.node.path())
        for node in self._tree.nodes():
            assert node.lock_count == locks[node], f"{node.lock_count} locks on {node.pages}"
        locked = sum(len(node.pages) for node in locks)
        assert self._tree.num_locked == locked, f"{locked} pages are locked, not as counted"
        assert self._tree.num_evictable == len(self._tree.pages()) - locked

    def _own_pages(self, req: Req) -> list[int]:
        """The pages that no other request can read."""
        return req.cache_handle.pages[req.cache_handle.cached_len // self._page_size :]

    def _write(self, table_idx: int, pages: list[int], first: int = 0) -> None:
        """Mirror a request's pages, from its `first` on, in its row of the page table."""
        starts = torch.tensor(pages, dtype=torch.int32)[:, None] * self._page_size
        locations = (starts + torch.arange(self._page_size, dtype=torch.int32)).flatten()
        row = self._page_table[table_idx, first * self._page_size :]
        row[: len(locations)] = locations[: len(row)].to(row.device)


def _handle(req: Req) -> CacheHandle:
    assert isinstance(req.cache_handle, CacheHandle)
    return req.cache_handle
