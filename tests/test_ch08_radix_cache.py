"""Chapter 8, the tree: it finds the longest known prefix, keeps the locked, forgets the oldest.

Tokens are small integers, and a page is whatever number the test gives it: the tree never looks
into a page.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from minisgl.kvcache.radix_tree import RadixHandle, RadixNode, RadixTree

page_sizes = pytest.mark.parametrize("page_size", [1, 3, 4, 16])


def text(num_tokens: int, start: int = 0) -> list[int]:
    return list(range(start, start + num_tokens))


def tree_of(*texts: list[int], page_size: int = 1) -> RadixTree:
    """A tree that was given each text; its pages are numbered as they come."""
    tree, next_page = RadixTree(page_size), 0
    for ids in texts:
        count = len(ids) // page_size
        tree.insert(ids, list(range(next_page, next_page + count)))
        next_page += count
    return tree


def locked(tree: RadixTree, ids: list[int]) -> RadixHandle:
    handle = tree.match(ids)
    tree.lock(handle)
    return handle


def prefixes(tree: RadixTree) -> dict[tuple[int, ...], int]:
    """Every prefix of whole pages that the tree keeps, and its last page."""
    found = {}
    before: dict[RadixNode | None, tuple[int, ...]] = {}
    for node in tree.nodes():  # parents come first
        ids = before.get(node.parent, ())
        for key, page in zip(node.keys, node.pages, strict=True):
            ids += key
            found[ids] = page
        before[node] = ids
    return found


# --- match and insert -----------------------------------------------------------------------------


def test_an_empty_tree_knows_nothing() -> None:
    handle = RadixTree(4).match(text(9))
    assert (handle.cached_len, handle.pages()) == (0, [])


def test_a_text_that_begins_otherwise_matches_nothing() -> None:
    assert tree_of(text(8)).match(text(8, start=1)).cached_len == 0


@page_sizes
@pytest.mark.parametrize("pages", [1, 2, 5])
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_a_match_is_whole_pages_wherever_the_text_ends(
    page_size: int, pages: int, beside: int
) -> None:
    """A text that ends before, on or after the border of a page."""
    tree = tree_of(text(6 * page_size), page_size=page_size)
    length = pages * page_size + beside
    handle = tree.match(text(length))
    assert handle.cached_len == length // page_size * page_size
    assert handle.pages() == list(range(length // page_size))


@page_sizes
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_only_whole_pages_are_kept(page_size: int, beside: int) -> None:
    length = 3 * page_size + beside
    tree = tree_of(text(length), page_size=page_size)
    assert tree.pages() == list(range(length // page_size))
    assert tree.match(text(10 * page_size)).cached_len == length // page_size * page_size


@page_sizes
@pytest.mark.parametrize("common", [0, 1, 7, 16, 31, 32, 33, 47, 48])
def test_two_texts_share_their_common_whole_pages(page_size: int, common: int) -> None:
    one, other = text(48), text(common) + text(48 - common, start=100)
    shared = common // page_size
    total = 48 // page_size
    tree = RadixTree(page_size)
    ours = tree.insert(one, list(range(total)))
    theirs = tree.insert(other, list(range(100, 100 + total)))
    assert ours.cached_len == theirs.cached_len == total * page_size
    assert ours.pages() == tree.match(one).pages() == list(range(total))
    kept = [*range(shared), *range(100 + shared, 100 + total)]
    assert theirs.pages() == tree.match(other).pages() == kept
    assert len(tree.pages()) == 2 * total - shared


def test_the_tree_keeps_its_own_copy_of_what_it_knows() -> None:
    tree = RadixTree(1)
    tree.insert([1, 2, 3], [10, 11, 12])
    assert tree.insert([1, 2, 3, 4], [20, 21, 22, 23]).pages() == [10, 11, 12, 23]
    assert tree.match([1, 2, 3, 4]).pages() == [10, 11, 12, 23]
    part = tree.insert([1, 2], [30, 31])
    assert (part.cached_len, part.pages()) == (2, [10, 11])
    assert sorted(tree.pages()) == [10, 11, 12, 23]


@page_sizes
def test_the_handle_of_an_insertion_protects_what_was_inserted(page_size: int) -> None:
    """What was known and what is new, and nothing after a page that is not whole."""
    tree = tree_of(text(2 * page_size), page_size=page_size)
    handle = tree.insert(text(4 * page_size), [10, 11, 12, 13])
    tree.insert([*text(4 * page_size), *[99] * page_size], [20, 21, 22, 23, 24])
    tree.lock(handle)
    assert (tree.num_locked, tree.num_evictable) == (4, 1)
    assert tree.evict(1) == [24]
    assert handle.pages() == [0, 1, 12, 13]


def test_nothing_can_be_inserted() -> None:
    """Less than a page: what a short request leaves at its end."""
    tree = tree_of(text(8), page_size=4)
    handle = tree.insert(text(3), [])
    assert (handle.cached_len, handle.pages()) == (0, [])
    tree.lock(handle)
    tree.unlock(handle)
    assert (tree.num_locked, tree.num_evictable) == (0, 2)


def test_a_page_is_shared_only_if_all_its_tokens_are_the_same() -> None:
    tree = tree_of([1, 2, 3, 4], page_size=4)
    assert tree.match([1, 2, 3, 5]).cached_len == 0
    assert tree.match([0, 2, 3, 4]).cached_len == 0


def test_pages_and_tokens_must_agree() -> None:
    with pytest.raises(AssertionError, match=r"\b2\b.*\b3\b"):
        RadixTree(4).insert(text(9), [0, 1, 2])


def test_common_beginnings_are_one_node_and_the_rest_branches() -> None:
    tree = tree_of([1, 2, 3, 4], [1, 2, 5], [1, 2, 3, 6], [7])
    runs = sorted([token for (token,) in node.keys] for node in tree.nodes())
    assert runs == [[1, 2], [3], [4], [5], [6], [7]]


def test_a_match_inside_a_node_splits_it_and_loses_nothing() -> None:
    tree = tree_of(text(10))
    whole = tree.match(text(10))
    part = tree.match(text(4))
    assert (part.cached_len, part.pages()) == (4, [0, 1, 2, 3])
    assert whole.pages() == list(range(10))  # a handle outlives the split of its node
    assert [len(node.pages) for node in tree.nodes()] == [4, 6]
    assert tree.match(text(10)).pages() == list(range(10))


# --- locks ----------------------------------------------------------------------------------------


def test_a_lock_protects_the_whole_prefix_and_nothing_beside_it() -> None:
    tree = tree_of([1, 2, 3, 4], [1, 2, 5, 6, 7])
    handle = locked(tree, [1, 2, 3, 4])
    assert (tree.num_locked, tree.num_evictable) == (4, 3)
    assert sorted(tree.evict(3)) == [6, 7, 8]
    tree.unlock(handle)
    assert (tree.num_locked, tree.num_evictable) == (0, 4)
    assert sorted(tree.evict(4)) == [0, 1, 2, 3]


def test_a_prefix_locked_twice_is_unlocked_twice() -> None:
    tree = tree_of(text(5))
    one, other = locked(tree, text(5)), locked(tree, text(3))
    tree.unlock(one)
    assert (tree.num_locked, tree.num_evictable) == (3, 2)
    tree.unlock(other)
    assert (tree.num_locked, tree.num_evictable) == (0, 5)


def test_a_split_keeps_the_locks() -> None:
    tree = tree_of(text(10))
    one, other = locked(tree, text(10)), locked(tree, text(10))
    tree.insert([*text(4), 99], [*range(4), 50])
    assert (tree.num_locked, tree.num_evictable) == (10, 1)
    assert tree.evict(1) == [50]
    tree.unlock(one)
    assert tree.num_locked == 10
    tree.unlock(other)
    assert (tree.num_locked, tree.num_evictable) == (0, 10)


def test_a_locked_prefix_is_never_evicted() -> None:
    tree = tree_of(text(6), text(6, start=50))
    handle = locked(tree, text(6))
    with pytest.raises(AssertionError, match=r"\b6\b"):
        tree.evict(7)
    assert sorted(tree.evict(6)) == [6, 7, 8, 9, 10, 11]
    with pytest.raises(AssertionError, match=r"\b0\b"):
        tree.evict(1)
    assert tree.match(text(6)).pages() == handle.pages()


@pytest.mark.parametrize("pages", [2, 5])
def test_unlocking_what_is_not_locked_is_an_assertion_that_names_it(pages: int) -> None:
    tree = tree_of(text(20), page_size=4)
    handle = tree.match(text(4 * pages))
    with pytest.raises(AssertionError, match=rf"\b{4 * pages}\b"):
        tree.unlock(handle)
    tree.lock(handle)
    tree.unlock(handle)
    with pytest.raises(AssertionError, match=rf"\b{4 * pages}\b"):
        tree.unlock(handle)
    assert (tree.num_locked, tree.num_evictable) == (0, 5)


def test_the_empty_prefix_can_be_locked_and_holds_nothing() -> None:
    tree = tree_of(text(5))
    handle = locked(tree, text(5, start=9))
    assert (handle.cached_len, tree.num_locked, tree.num_evictable) == (0, 0, 5)
    tree.unlock(handle)
    assert tree.num_evictable == 5


# --- eviction -------------------------------------------------------------------------------------


def test_the_prefix_that_was_not_used_for_longest_goes_first() -> None:
    tree = tree_of([1, 1], [2, 2], [3, 3], [4, 4])
    tree.match([1, 1])
    tree.insert([3, 3], [20, 21])
    order = [tree.evict(2) for _ in range(4)]
    assert [sorted(pages) for pages in order] == [[2, 3], [6, 7], [0, 1], [4, 5]]


def test_exactly_as_many_pages_go_as_were_asked_for() -> None:
    tree = tree_of(text(10), text(3, start=50))
    sizes = []
    for count in (0, 1, 4, 6, 2):
        evicted = tree.evict(count)
        assert len(evicted) == len(set(evicted)) == count
        sizes.append(len(tree.pages()))
    assert sizes == [13, 12, 8, 2, 0]
    assert tree.num_evictable == 0


def test_a_text_is_forgotten_from_its_end() -> None:
    tree = tree_of(text(10))
    assert sorted(tree.evict(3)) == [7, 8, 9]
    assert tree.match(text(10)).pages() == list(range(7))


def test_a_beginning_outlives_all_that_go_on_from_it() -> None:
    tree = tree_of([1, 2, 3], [1, 2, 4], [1, 2, 5, 6])
    assert len(tree.evict(4)) == 4
    assert prefixes(tree) == {(1,): 0, (1, 2): 1}
    assert sorted(tree.evict(2)) == [0, 1]


def test_a_prefix_touched_partially_is_not_the_next_victim() -> None:
    """Its end ages; the part in use does not."""
    tree = tree_of(text(8), text(4, start=50))
    tree.match(text(3))
    assert sorted(tree.evict(5)) == [3, 4, 5, 6, 7]
    assert sorted(tree.evict(4)) == [8, 9, 10, 11]
    assert prefixes(tree) == {(0,): 0, (0, 1): 1, (0, 1, 2): 2}


def test_a_forgotten_text_can_be_kept_again() -> None:
    tree = tree_of(text(6))
    tree.evict(4)
    assert tree.insert(text(6), [20, 21, 22, 23, 24, 25]).pages() == [0, 1, 22, 23, 24, 25]
    assert (tree.num_locked, tree.num_evictable) == (0, 6)


# --- what an eviction costs -----------------------------------------------------------------------


Touched = Callable[..., int]


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> Touched:
    """A function that calls another one and says how many nodes of a tree that one looked at."""

    def count(function: Callable[..., object], *args: object) -> int:
        seen: set[int] = set()

        def spy(node: RadixNode, name: str) -> object:
            seen.add(id(node))
            return object.__getattribute__(node, name)

        with monkeypatch.context() as patch:
            patch.setattr(RadixNode, "__getattribute__", spy)
            function(*args)
        return len(seen)

    return count


def forest(num_leaves: int) -> RadixTree:
    """A common beginning of two pages, and as many leaves of two pages after it."""
    return tree_of(*([0, 1, n, n] for n in range(2, num_leaves + 2)))


def chain(depth: int) -> RadixTree:
    """A conversation of as many turns: each is one page, and one node, below the one before."""
    return tree_of(*(text(turns) for turns in range(1, depth + 1)))


@pytest.mark.parametrize("shape", [forest, chain])
def test_the_cost_of_an_eviction_does_not_grow_with_the_tree(
    shape: Callable[[int], RadixTree], touched: Touched
) -> None:
    costs = {size: touched(shape(size).evict, 20) for size in (50, 200, 1000)}
    assert len(set(costs.values())) == 1, costs


@pytest.mark.parametrize("shape", [forest, chain])
@pytest.mark.parametrize("count", [1, 7, 40])
def test_an_eviction_looks_at_the_leaves_it_shortens_and_at_their_parents(
    shape: Callable[[int], RadixTree], count: int, touched: Touched
) -> None:
    """So at two nodes for each page at most, however deep the tree is."""
    assert touched(shape(200).evict, count) <= 2 * count


def test_the_cost_of_an_eviction_grows_with_what_it_evicts(touched: Touched) -> None:
    costs = {n: touched(forest(1000).evict, 2 * n) for n in (1, 10, 100)}
    assert costs[1] <= 3  # the leaf, the one above it, and perhaps another
    assert all(costs[n] <= n + 2 for n in costs), costs
    assert costs[1] < costs[10] < costs[100]


@pytest.mark.parametrize("use", ["match", "lock"])
def test_that_all_prefixes_were_in_use_makes_no_eviction_dearer(use: str, touched: Touched) -> None:
    """Keeping the order of use is paid for by each use, not by the next eviction."""
    tree = forest(1000)
    for n in range(2, 1002):
        handle = tree.match([0, 1, n, n])
        if use == "lock":
            tree.lock(handle)
            tree.unlock(handle)
    assert touched(tree.evict, 2) <= 3


def test_the_cost_of_a_match_grows_with_its_path_not_with_the_tree(touched: Touched) -> None:
    costs = {size: touched(forest(size).match, [0, 1, 9, 9]) for size in (50, 5000)}
    assert costs[50] == costs[5000] <= 3


# --- a naive model --------------------------------------------------------------------------------


@dataclass
class NaiveCache:
    """The same laws for prefixes that are each kept on their own, found by trying."""

    page_size: int
    pages: dict[tuple[int, ...], int] = field(default_factory=dict)
    last_use: dict[tuple[int, ...], int] = field(default_factory=dict)
    locks: list[tuple[int, ...]] = field(default_factory=list)
    clock: int = 0

    def parts(self, ids: list[int]) -> Iterator[tuple[int, ...]]:
        """Every prefix of whole pages, the shortest first."""
        for end in range(self.page_size, len(ids) + 1, self.page_size):
            yield tuple(ids[:end])

    def match(self, ids: list[int]) -> tuple[int, ...]:
        self.clock += 1
        best: tuple[int, ...] = ()
        for part in self.parts(ids):
            if part not in self.pages:
                break
            self.last_use[part] = self.clock
            best = part
        return best

    def insert(self, ids: list[int], pages: list[int]) -> list[int]:
        """Which pages hold the text now."""
        self.match(ids)
        for part, page in zip(self.parts(ids), pages, strict=True):
            self.pages.setdefault(part, page)
            self.last_use[part] = self.clock
        return [self.pages[part] for part in self.parts(ids)]

    def is_locked(self, part: tuple[int, ...]) -> bool:
        return any(lock[: len(part)] == part for lock in self.locks)

    def num_locked(self) -> int:
        return sum(map(self.is_locked, self.pages))

    def evict(self, count: int) -> set[int]:
        gone = set()
        for _ in range(count):
            inner = {part[: -self.page_size] for part in self.pages}
            ends = [part for part in self.pages if part not in inner and not self.is_locked(part)]
            victim = min(ends, key=lambda part: self.last_use[part])
            gone.add(self.pages.pop(victim))
        return gone


@pytest.mark.parametrize("seed", range(3))
@page_sizes
def test_thousands_of_random_operations_agree_with_a_naive_set_of_prefixes(
    page_size: int, seed: int
) -> None:
    """After each one every page has exactly one owner and the counters equal a recount."""
    chance, num_pages = random.Random(seed), 24
    tree, naive = RadixTree(page_size), NaiveCache(page_size)
    free = list(range(num_pages))
    held: list[tuple[RadixHandle, tuple[int, ...]]] = []
    for _ in range(2000):
        # Two letters, a page of each: prefixes meet often, and end before and on its border.
        letters = [chance.randrange(2) for _ in range(chance.randrange(7))]
        ids = [letter for letter in letters for _ in range(page_size)]
        ids = ids[: len(ids) - chance.randrange(page_size)]
        operation = chance.choice(["match", "lock", "unlock", "insert", "insert", "evict"])
        if operation == "match":
            assert tuple(ids[: tree.match(ids).cached_len]) == naive.match(ids)
        elif operation == "lock" and len(held) < 6:
            handle, part = tree.match(ids), naive.match(ids)
            assert handle.pages() == [naive.pages[one] for one in naive.parts(list(part))]
            tree.lock(handle)
            naive.locks.append(part)
            held.append((handle, part))
        elif operation == "unlock" and held:
            handle, part = held.pop(chance.randrange(len(held)))
            tree.unlock(handle)
            naive.locks.remove(part)
            assert tree.match(list(part)).cached_len == len(naive.match(list(part)))
        elif operation == "insert" and len(ids) // page_size <= len(free):
            pages = [free.pop() for _ in range(len(ids) // page_size)]
            kept = naive.insert(ids, pages)
            handle = tree.insert(ids, pages)
            assert (handle.cached_len, handle.pages()) == (len(kept) * page_size, kept)
            free += [page for page in pages if page not in kept]
        elif operation == "evict":
            count = chance.randrange(min(5, tree.num_evictable + 1))
            evicted = tree.evict(count)
            assert set(evicted) == naive.evict(count)
            free += evicted
        assert prefixes(tree) == naive.pages
        assert sorted([*free, *tree.pages()]) == list(range(num_pages))
        assert tree.num_locked == naive.num_locked()
        assert tree.num_evictable == len(naive.pages) - tree.num_locked
        assert all(
            handle.pages() == [naive.pages[p] for p in naive.parts(list(part))]
            for handle, part in held
        )
