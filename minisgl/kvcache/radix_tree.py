"""The prefixes whose KV is kept, as a tree in which common beginnings are stored once.

    root ─┬─ "You are a helpful" ─┬─ " assistant. What is"   (leaf)
          │                       └─ " poet. Write"          (leaf)
          └─ "def main():"                                   (leaf)

Source: Zheng et al., "SGLang: Efficient Execution of Structured Language Model Programs" (2024).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

PageKey = tuple[int, ...]


@dataclass(eq=False)
class RadixNode:
    """A run of whole pages that has one beginning and, so far, no branch inside."""

    keys: list[PageKey]  # the token ids of each page
    pages: list[int]  # where their KV lies
    parent: RadixNode | None
    children: dict[PageKey, RadixNode] = field(default_factory=dict)  # by their first page
    lock_count: int = 0  # how many locked handles end here or below

    def path(self) -> Iterator[RadixNode]:
        """This node and those above it, without the root."""
        node = self
        while node.parent is not None:
            yield node
            node = node.parent


@dataclass(frozen=True)
class RadixHandle:
    """A prefix that the tree knows: the path from the root that ends with `node`."""

    cached_len: int  # how many tokens it has
    node: RadixNode

    def pages(self) -> list[int]:
        """The pages of the prefix, in order."""
        return [page for node in reversed([*self.node.path()]) for page in node.pages]


class RadixTree:
    """Finds, keeps and gives up prefixes, always in whole pages.

    Knows pages by number only; who owns the others is the cache manager's business.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._root = RadixNode([], [], None)
        # The nodes that no handle protects, the least recently used one first. Using a node means
        # using those above it, which are moved behind it, so the first is always a leaf.
        self._unlocked: OrderedDict[RadixNode, None] = OrderedDict()
        self.num_evictable = 0  # pages that no handle protects
        self.num_locked = 0  # pages that some handle protects

    def match(self, input_ids: list[int]) -> RadixHandle:
        """The longest known prefix of `input_ids`; its nodes count as used just now."""
        keys = self._page_keys(input_ids)
        node, matched = self._root, 0
        while matched < len(keys) and (child := node.children.get(keys[matched])) is not None:
            common = _common_length(child.keys, keys[matched : matched + len(child.keys)])
            # A part in use must not age with the rest of its node, so it becomes its own node.
            node = child if common == len(child.keys) else self._split(child, common)
            matched += common
        self._use(node)
        return RadixHandle(matched * self._page_size, node)

    def insert(self, input_ids: list[int], pages: list[int]) -> RadixHandle:
        """Keep the whole pages of `input_ids`, whose KV lies in `pages`.

        Where the tree already has a page it keeps its own copy; the pages after those become the
        tree's. The handle says which pages hold the prefix now.
        """
        handle = self.match(input_ids)
        keys = self._page_keys(input_ids)
        assert len(pages) == len(keys), f"{len(keys)} pages of tokens, but {len(pages)} of KV"
        known = handle.cached_len // self._page_size
        if known == len(keys):
            return handle
        leaf = RadixNode(keys[known:], pages[known:], handle.node)
        handle.node.children[keys[known]] = leaf
        self.num_evictable += len(leaf.pages)
        self._use(leaf)
        return RadixHandle(len(keys) * self._page_size, leaf)

    def lock(self, handle: RadixHandle) -> None:
        """Protect the prefix from eviction; every lock needs its unlock."""
        for node in handle.node.path():
            if node.lock_count == 0:
                del self._unlocked[node]
                self.num_evictable -= len(node.pages)
                self.num_locked += len(node.pages)
            node.lock_count += 1

    def unlock(self, handle: RadixHandle) -> None:
        """Undo one lock. Unlocking what is not locked is an AssertionError that names it."""
        for node in handle.node.path():
            assert node.lock_count > 0, f"the prefix of {handle.cached_len} tokens is not locked"
            node.lock_count -= 1
            if node.lock_count == 0:
                self.num_locked -= len(node.pages)
                self.num_evictable += len(node.pages)
                self._unlocked[node] = None

    def evict(self, num_pages: int) -> list[int]:
        """Give up `num_pages` pages, from the ends of the least recently used leaves.

        Looks at two nodes per page at most, a leaf and its parent, however large the tree is. The
        caller has checked that `num_evictable` is enough.
        """
        assert num_pages <= self.num_evictable, f"only {self.num_evictable} pages can be evicted"
        evicted: list[int] = []
        while len(evicted) < num_pages:
            leaf = next(iter(self._unlocked))
            evicted += self._shorten(leaf, num_pages - len(evicted))
        self.num_evictable -= num_pages
        return evicted

    def pages(self) -> list[int]:
        """Every page in the tree."""
        return [page for node in self.nodes() for page in node.pages]

    def nodes(self) -> Iterator[RadixNode]:
        """Every node but the root, parents first."""
        stack = [*self._root.children.values()]
        while stack:
            node = stack.pop()
            yield node
            stack += node.children.values()

    def _page_keys(self, input_ids: list[int]) -> list[PageKey]:
        size = self._page_size
        whole = len(input_ids) // size * size
        return [tuple(input_ids[i : i + size]) for i in range(0, whole, size)]

    def _use(self, node: RadixNode) -> None:
        """Move the unlocked nodes of a path to the end of the queue, each behind those below it."""
        for used in node.path():
            if used.lock_count == 0:
                self._unlocked[used] = None
                self._unlocked.move_to_end(used)

    def _split(self, node: RadixNode, at: int) -> RadixNode:
        """Split `node` before its page `at`: a new node takes the front, `node` keeps the rest.

        Handles that end at `node` stay valid, since their path now leads through the new one; so
        it inherits the locks.
        """
        parent = node.parent
        assert parent is not None
        front = RadixNode(
            node.keys[:at], node.pages[:at], parent, {node.keys[at]: node}, node.lock_count
        )
        parent.children[front.keys[0]] = front
        node.keys, node.pages, node.parent = node.keys[at:], node.pages[at:], front
        return front

    def _shorten(self, leaf: RadixNode, most: int) -> list[int]:
        """Take up to `most` pages off the end of a leaf, and the leaf itself when none is left."""
        keep = max(0, len(leaf.pages) - most)
        taken = leaf.pages[keep:]
        if keep == 0:
            parent = leaf.parent
            assert parent is not None
            del parent.children[leaf.keys[0]], self._unlocked[leaf]
        del leaf.keys[keep:], leaf.pages[keep:]
        return taken


def _common_length(ours: list[PageKey], theirs: list[PageKey]) -> int:
    for index, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if a != b:
            return index
    return min(len(ours), len(theirs))
