"""The recorder of chapter 8."""

import sys
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
        self._numbers: dict[Any, int] = {}  # nodes, in the order in which they were seen
        self._running: dict[Any, int] = {}  # requests
        self._came = 0
        self._last: Trace = {}

    def made(self, _: None, manager: Any, *__: Any, **___: Any) -> None:
        self.manager = manager
        self._number(manager.tree._root)  # the root is 0

    def matched(self, handle: Any, _: Any, ids: list[int]) -> None:
        self._note("match", words=_words(ids), hit=handle.cached_len)

    def asked(self, handle: Any, _: Any, ids: list[int]) -> None:
        self._note("ask", always=True, words=_words(ids), hit=handle.cached_len)

    def locked(self, _: None, __: Any, handle: Any) -> None:
        self._note("lock", path=self._path(handle))

    def unlocked(self, _: None, __: Any, handle: Any) -> None:
        self._note("unlock", path=self._path(handle))

    def inserted(self, known: int, _: Any, ids: list[int], pages: list[int]) -> None:
        self._note("insert", words=_words(ids), pages=pages, known=known)

    def evicted(self, pages: list[int], *_: Any) -> None:
        self._note("evict", pages=pages)

    def allocated(self, _: None, __: Any, req: Any) -> None:
        self._came += 1
        self._running[req] = self._came
        self._note("allocate", request=self._came, words=_words(req.input_ids.tolist()))

    def cached(self, _: None, __: Any, req: Any) -> None:
        self._note("cache", always=True, request=self._running[req])

    def freed(self, _: None, __: Any, req: Any) -> None:
        words = _words(req.input_ids.tolist())
        self._note("free", always=True, request=self._running.pop(req), words=words)

    def _note(self, kind: str, *, always: bool = False, **more: Any) -> None:
        """Add an event, unless nothing has changed and it is not one to be seen in any case."""
        now = self._state()
        if always or now != self._last:
            self.events.append({"kind": kind, **more, **now})
            self._last = now

    def _state(self) -> Trace:
        tree = self.manager.tree
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
        running = [(str(number), req) for req, number in self._running.items()]
        return {
            "nodes": sorted(nodes, key=lambda node: int(str(node["id"]))),
            "oldest": [self._number(node) for node in tree._unlocked],
            "free": self.manager.allocator.free_pages(),
            "own": {number: self.manager._own_pages(req) for number, req in running},
            "paths": {number: self._path(req.cache_handle) for number, req in running},
        }

    def _path(self, handle: Any) -> list[int]:
        return [self._number(node) for node in handle.node.path()]

    def _number(self, node: Any) -> int:
        return self._numbers.setdefault(node, len(self._numbers))


def _words(tokens: Any) -> list[str]:
    return [example().vocabulary[token] for token in tokens]


def ch08_radix_cache(_: None) -> Trace:
    """The tree, the free pages and the requests after every operation of the example."""
    from minisgl.kvcache.manager import CacheManager
    from minisgl.kvcache.radix_tree import RadixTree

    recorder = _Recorder()
    without_model()
    listen(CacheManager, "__init__", recorder.made)
    listen(CacheManager, "match_req", recorder.asked)
    listen(CacheManager, "allocate", recorder.allocated)
    listen(CacheManager, "cache_req", recorder.cached)
    listen(CacheManager, "free", recorder.freed)
    listen(RadixTree, "match", recorder.matched)
    listen(RadixTree, "insert", recorder.inserted)
    listen(RadixTree, "lock", recorder.locked)
    listen(RadixTree, "unlock", recorder.unlocked)
    listen(RadixTree, "evict", recorder.evicted)
    run_example("ch08_radix_cache")
    manager = recorder.manager
    return {
        "num_pages": manager.allocator.num_pages,
        "page_size": manager._page_size,
        "events": recorder.events,
    }
