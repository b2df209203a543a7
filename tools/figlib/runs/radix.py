"""The recorder of chapter 8."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))  # behind the tree of the step

from tools.figlib.runs.listening import Trace, example, listen, run_example, without_model


def ready() -> None:
    """The processes of the steps need no setting up."""


class _Recorder:
    """Notes the tree, the free pages and the requests after every operation."""

    def __init__(self) -> None:
        self.events: list[Trace] = []
        self.manager: Any = None
        self._nodes: dict[Any, int] = {}  # numbers, in the order in which they were seen
        self._rows: dict[int, int] = {}  # row of the page table -> the request in it, from 1 on
        self._came = 0
        self._now = 0  # the request whose call is going on
        self._asked: list[int] | None = None  # its prompt, until the tree has been asked for it
        self._hit = 0
        self._pages: dict[int, list[int]] = {}
        self._prefixes: dict[int, Any] = {}
        self._last: Trace = {}

    def made(self, _: None, manager: Any, *__: Any, **___: Any) -> None:
        self.manager = manager
        self._number(manager._tree._root)  # the root is 0

    def reserving(self, _: Any, row: int, ids: list[int], __: int) -> None:
        self._came += 1
        self._now = self._rows[row] = self._came
        self._asked = ids

    def matched(self, handle: Any, _: Any, ids: list[int]) -> None:
        self._hit = handle.cached_len
        self._note("match", words=_words(ids), hit=self._hit)
        if self._asked is not None:
            self._note("ask", always=True, words=_words(self._asked), hit=self._hit)
            self._asked = None

    def locked(self, _: None, __: Any, handle: Any) -> None:
        self._prefixes[self._now] = handle
        if path := self._path(handle):
            self._note("lock", path=path)

    def evicted(self, pages: list[int], *_: Any) -> None:
        self._note("evict", pages=pages)

    def reserved(self, handle: Any, _: Any, __: int, ids: list[int], ___: int) -> None:
        self._pages[self._now] = handle.pages
        self._note("allocate", request=self._now, words=_words(ids))

    def moving(self, _: Any, req: Any) -> None:
        self._now = self._rows[req.table_idx]

    def inserted(self, _: Any, __: Any, ids: list[int], pages: list[int]) -> None:
        known = self._hit // self.manager._page_size  # what it matched first
        self._note("insert", words=_words(ids), pages=pages, known=known)

    def unlocked(self, _: None, __: Any, handle: Any) -> None:
        self._note("unlock", path=self._path(handle))

    def cached(self, _: None, __: Any, req: Any) -> None:
        self._pages[self._now] = req.cache_handle.pages
        self._note("cache", always=True, request=self._now)

    def freed(self, _: None, __: Any, req: Any) -> None:
        del self._pages[self._now], self._prefixes[self._now]
        words = _words(req.input_ids.tolist())
        self._note("free", always=True, request=self._now, words=words)

    def _note(self, kind: str, *, always: bool = False, **more: Any) -> None:
        """Add an event, unless nothing has changed and it is not one to be seen in any case."""
        now = self._state()
        if always or now != self._last:
            self.events.append({"kind": kind, **more, **now})
            self._last = now

    def _state(self) -> Trace:
        tree = self.manager._tree
        nodes = [
            {
                "id": self._number(node),
                "parent": self._number(node.parent),
                "pages": [*node.pages],
                "words": [_words(key) for key in node.keys],
                "locks": node.lock_count,
            }
            for node in tree.nodes()
        ]
        return {
            "nodes": sorted(nodes, key=lambda node: int(str(node["id"]))),
            "oldest": [self._number(node) for node in tree._unlocked],
            "free": self.manager._allocator.free_pages(),
            "own": {str(number): self._own(number) for number in self._pages},
            "paths": {str(number): self._path(one) for number, one in self._prefixes.items()},
        }

    def _own(self, number: int) -> list[int]:
        """The pages of a request that are not its prefix's."""
        return self._pages[number][self._prefixes[number].cached_len // self.manager._page_size :]

    def _path(self, handle: Any) -> list[int]:
        return [self._number(node) for node in handle.node.path()]

    def _number(self, node: Any) -> int:
        return self._nodes.setdefault(node, len(self._nodes))


def _words(tokens: Any) -> list[str]:
    return [example().vocabulary[token] for token in tokens]


def _announce(owner: Any, method: str, listener: Callable[..., None]) -> None:
    """Call `listener(*arguments)` before each call of a method."""
    original = getattr(owner, method)

    def announced(*args: Any, **kwargs: Any) -> Any:
        listener(*args, **kwargs)
        return original(*args, **kwargs)

    setattr(owner, method, announced)


def ch08_radix_cache(_: None) -> Trace:
    """The tree, the free pages and the requests after every operation of the example."""
    from minisgl.kvcache.manager import CacheManager
    from minisgl.kvcache.radix_tree import RadixTree

    recorder = _Recorder()
    without_model()
    listen(CacheManager, "__init__", recorder.made)
    listen(CacheManager, "reserve", recorder.reserved)
    listen(CacheManager, "cache_req", recorder.cached)
    listen(CacheManager, "free", recorder.freed)
    _announce(CacheManager, "reserve", recorder.reserving)
    _announce(CacheManager, "cache_req", recorder.moving)
    _announce(CacheManager, "free", recorder.moving)
    listen(RadixTree, "match", recorder.matched)
    listen(RadixTree, "insert", recorder.inserted)
    listen(RadixTree, "lock", recorder.locked)
    listen(RadixTree, "unlock", recorder.unlocked)
    listen(RadixTree, "evict", recorder.evicted)
    run_example("ch08_radix_cache")
    manager = recorder.manager
    return {
        "num_pages": manager._num_pages,
        "page_size": manager._page_size,
        "events": recorder.events,
    }


def ch08_cache_req(_: None) -> Trace:
    """One call of `cache_req`, of a request whose text another has brought meanwhile, in part."""
    import torch

    from minisgl.core import Req, SamplingParams
    from minisgl.kvcache.manager import CacheManager
    from minisgl.kvcache.radix_tree import RadixTree

    size, rows = 2, torch.zeros(3, 16, dtype=torch.int32)
    manager = CacheManager(16, size, rows)

    def come(row: int, text: str) -> Any:
        ids = [ord(letter) for letter in text]
        handle: Any = manager.reserve(row, ids, len(ids) + 2)
        tokens = torch.tensor(ids, dtype=torch.int32)
        return Req(tokens, row, handle.cached_len, 3, 0, SamplingParams(), handle)

    def computed(req: Any) -> Any:
        req.complete_one()
        return req

    manager.cache_req(computed(come(0, "abcde")))
    twin, req = come(1, "abcdefghx"), come(2, "abcdefghijklm")
    manager.cache_req(computed(twin))
    computed(req)
    seen: Trace = {"text": "".join(map(chr, req.input_ids.tolist())), "page_size": size}
    seen |= {"old": req.cache_handle.pages, "old_prefix": req.cache_handle.prefix.pages()}
    seen |= {"tree": manager._tree.pages(), "free": manager._allocator.free_pages()}
    listen(RadixTree, "insert", lambda prefix, *_: seen.update(prefix=prefix.pages()))
    manager.cache_req(req)
    seen |= {"pages": req.cache_handle.pages, "free_after": manager._allocator.free_pages()}
    return seen
