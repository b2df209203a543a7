"""Chapter 8, the manager and `LLM`: a prefix computed once is read by all who share it.

Most tests run the real scheduler on a fake engine, which reads the text of a request back through
the page table: a page that is read after it was given away, or that is another's, fails at once.
"""

import random
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from fake_engine import Scheduler, fake_engine, make_request
from minisgl.core import Batch, SamplingParams
from minisgl.engine.engine import ForwardOutput
from minisgl.kvcache.allocator import PageAllocator
from minisgl.kvcache.manager import CacheManager
from minisgl.llm import LLM
from minisgl.scheduler.request import Request

TinyModel = Callable[[str], Path]

page_sizes = pytest.mark.parametrize("page_size", [1, 3, 4, 16])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# --- the pages after a prefix ---------------------------------------------------------------------


def pages_left(num_pages: int, free: list[int]) -> PageAllocator:
    """An allocator in which exactly `free` are free."""
    allocator = PageAllocator(num_pages)
    allocator.allocate(num_pages)
    allocator.free(free)
    return allocator


def test_the_pages_behind_a_page_come_first() -> None:
    """Even where a shorter run would do, which is chosen if nobody asks."""
    free = [2, 3, 10, 11, 12, 13]
    assert pages_left(20, free).allocate(2) == [2, 3]
    assert pages_left(20, free).allocate(2, after=9) == [10, 11]
    assert pages_left(20, free).allocate(4, after=9) == [10, 11, 12, 13]


@pytest.mark.guard
@pytest.mark.parametrize("after", [0, 2, 8, 10, 13, 19])
def test_where_those_behind_it_are_not_free_a_page_makes_no_difference(after: int) -> None:
    free = [2, 3, 10, 11, 12, 13]
    allocator = pages_left(20, free)
    assert allocator.allocate(2, after=after) == [2, 3]
    assert allocator.free_pages() == [10, 11, 12, 13]


@pytest.mark.guard
def test_where_only_some_of_those_behind_it_are_free_the_others_stay_one_run() -> None:
    assert pages_left(20, [4, 5, 10, 11, 12]).allocate(3, after=3) == [10, 11, 12]
    # … and where no run is enough, the longest ones are used up, as ever.
    assert pages_left(20, [4, 5, 10, 11, 12]).allocate(4, after=3) == [10, 11, 12, 4]


# --- a reservation --------------------------------------------------------------------------------


def make_cache(num_pages: int, page_size: int) -> CacheManager:
    return CacheManager(num_pages, page_size, torch.zeros(4, 100, dtype=torch.int32))


@page_sizes
def test_room_is_counted_in_whole_pages(page_size: int) -> None:
    for num_tokens in (3 * page_size + 1, 1000):
        assert make_cache(3, page_size).reserve(0, [1], num_tokens) is None
    handle = make_cache(3, page_size).reserve(0, [1], 3 * page_size)
    assert handle is not None
    assert (handle.pages, handle.cached_len) == ([0, 1, 2], 0)
    handle = make_cache(3, page_size).reserve(0, [1], 2 * page_size + 1)
    assert handle is not None and len(handle.pages) == 3


@page_sizes
def test_the_page_table_mirrors_a_reservation(page_size: int) -> None:
    page_table = torch.full((2, 40), -1, dtype=torch.int32)
    handle = CacheManager(9, page_size, page_table).reserve(1, [1], 2 * page_size)
    assert handle is not None
    places = [page * page_size + n for page in handle.pages for n in range(page_size)]
    assert page_table[1, : 2 * page_size].tolist() == places
    assert (page_table[0] == -1).all()


@page_sizes
def test_a_row_may_be_shorter_than_the_pages_of_its_request(page_size: int) -> None:
    """The longest request ends anywhere in its last page."""
    page_table = torch.full((1, page_size + 1), -1, dtype=torch.int32)
    assert CacheManager(2, page_size, page_table).reserve(0, [1], page_size + 1) is not None
    assert page_table.tolist() == [list(range(page_size + 1))]


@page_sizes
def test_a_refusal_leaves_nothing_behind(page_size: int) -> None:
    """No page, no lock, and the page table as it was."""
    server = Server(page_size=page_size, num_pages=6, max_seq_len=6 * page_size + 1)
    shared = [7] * (2 * page_size)
    server.run(shared, 1)
    cache, page_table = server.scheduler._cache, server.engine.ctx.page_table
    before = page_table.clone()
    for _ in range(3):
        assert cache.reserve(0, [*shared, 8], 6 * page_size + 1) is None
        cache.check_invariants([])
        assert torch.equal(page_table, before)
    assert cache.reserve(0, [*shared, 8], 6 * page_size) is not None


def test_a_reset_makes_all_pages_free_and_forgets_every_prefix() -> None:
    cache = make_cache(3, 4)
    assert cache.reserve(0, list(range(9)), 12) is not None
    assert cache.reserve(1, [1], 1) is None
    cache.reset()
    cache.check_invariants([])
    handle = cache.reserve(0, list(range(9)), 12)
    assert handle is not None and handle.cached_len == 0


# --- the scheduler on a fake engine ---------------------------------------------------------------


class Server:
    """The scheduler and its fake engine; the laws are checked after every step."""

    def __init__(self, letters: int = 380, **options: Any) -> None:
        options = {"page_size": 4, "num_pages": 40, "max_running_reqs": 8} | options
        self.engine = fake_engine(letters, **options)
        self.scheduler = Scheduler(self.engine, frozenset())
        self.uids = count()

    def add(self, prompt: list[int], output_len: int = 1) -> Request:
        request = make_request(next(self.uids), prompt, output_len)
        self.scheduler.add(request)
        return request

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            self.scheduler.step()
            self.scheduler.check_invariants()

    def run(self, prompt: list[int], output_len: int = 1) -> Request:
        """Compute a request to its end, which must be right."""
        return self.run_all([(prompt, output_len)])[0]

    def run_all(self, wanted: list[tuple[list[int], int]]) -> list[Request]:
        requests = [self.add(*one) for one in wanted]
        while any(request.finish_reason is None for request in requests):
            self.step()
        for request in requests:
            assert request.token_ids == self.engine.answer(request.input_ids, request.output_len)
        return requests

    def cached(self, prompt: list[int]) -> int:
        """How many tokens of `prompt` are known; it is computed to find out, and known then."""
        return self.run(prompt).num_cached_tokens


def pages_of(request: Request) -> list[int]:
    return request.req.cache_handle.pages


@page_sizes
@pytest.mark.parametrize("pages", [1, 2, 4])
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_a_prompt_sent_twice_is_computed_from_its_last_whole_page_on(
    page_size: int, pages: int, beside: int
) -> None:
    """k pages, one token less, one more; and the whole prompt is never taken from the cache."""
    length = max(1, pages * page_size + beside)
    server, prompt = Server(page_size=page_size, max_seq_len=100), list(range(3, 3 + length))
    cold, warm = server.run(prompt, 3), server.run(prompt, 3)
    cached = (length - 1) // page_size * page_size
    assert (cold.num_cached_tokens, warm.num_cached_tokens) == (0, cached)
    assert server.engine.batches[3] == {warm.uid: (cached, length)}


@page_sizes
@pytest.mark.parametrize("common", [0, 1, 3, 4, 5, 15, 16, 17, 20])
def test_a_prefix_may_end_before_on_or_after_the_border_of_a_page(
    page_size: int, common: int
) -> None:
    server = Server(page_size=page_size, num_pages=60, max_seq_len=60)
    server.run([5] * 20)
    request = server.run([5] * common + [6] * 20, 3)
    assert request.num_cached_tokens == common // page_size * page_size


def test_a_follow_up_finds_the_answer_of_the_turn_before() -> None:
    server, prompt = Server(page_size=4), list(range(3, 13))
    history = prompt + server.run(prompt, 8).token_ids
    # The KV of the last token was never computed: 17 of 18 are there, in four whole pages.
    assert server.run([*history, 7, 7], 4).num_cached_tokens == 16


def test_what_is_known_says_nothing_of_what_begins_otherwise() -> None:
    server = Server(page_size=1)
    server.run([5, 6, 7, 8])
    assert server.cached([6, 7, 8, 9]) == 0
    assert server.cached([5, 6, 7, 9]) == 3
    assert server.cached([5, 9]) == 1


# --- whose pages are whose ------------------------------------------------------------------------


def test_a_request_reads_the_shared_pages_and_writes_its_own() -> None:
    server = Server(page_size=4)
    first = server.run(list(range(3, 15)), 1)
    one, other = server.add([*range(3, 11), 50, 51], 3), server.add([*range(3, 11), 60], 3)
    server.step()
    assert pages_of(one)[:2] == pages_of(other)[:2] == pages_of(first)[:2]
    own = [*pages_of(one)[2:], *pages_of(other)[2:]]
    assert len({*own, *pages_of(first)}) == len(own) + len(pages_of(first))


@page_sizes
def test_of_two_copies_one_is_freed_and_both_requests_read_the_other(page_size: int) -> None:
    """Two prompts that come together are computed twice, since neither finds the other's KV."""
    server, prompt = Server(page_size=page_size, num_pages=99, max_seq_len=64), [5] * 30
    one, other = server.add(prompt, 4), server.add(prompt, 4)
    server.step()  # its check finds every page with one owner: what was freed is free
    shared = 30 // page_size
    assert pages_of(one)[:shared] == pages_of(other)[:shared]
    assert not {*pages_of(one)[shared:]} & {*pages_of(other)[shared:]}
    server.step(3)
    assert one.token_ids == other.token_ids == server.engine.answer(prompt, 4)


def test_the_duplicates_of_requests_that_had_a_prefix_are_freed_too() -> None:
    server = Server(page_size=4)
    server.run([5] * 8)
    one, other = server.add([5] * 8 + [6] * 9, 4), server.add([5] * 8 + [6] * 9, 4)
    server.step()
    assert one.num_cached_tokens == other.num_cached_tokens == 8
    assert pages_of(one)[:4] == pages_of(other)[:4]
    server.step(3)
    assert one.token_ids == other.token_ids == server.engine.answer(one.input_ids, 4)


def test_a_prompt_is_kept_as_soon_as_it_is_computed() -> None:
    """Not only when the request that brought it has ended."""
    server = Server(page_size=4)
    server.run([5] * 5)
    request = server.add([5] * 4 + [6] * 9, 4)
    server.step()
    assert request.req.cache_handle.cached_len == 12
    server.step()
    assert request.req.cache_handle.cached_len == 12  # and what it generates when it ends
    server.step(2)
    assert server.cached(request.input_ids + request.token_ids) == 16


def test_what_ends_is_kept_in_whole_pages_and_the_rest_is_free() -> None:
    server = Server(page_size=4, num_pages=10)
    first = server.run([5] * 6, 4)  # nine tokens have KV: two pages, and one token in a third
    server.run([6] * 8, 25)  # needs 8 pages: all that should be free
    assert server.cached(first.input_ids + first.token_ids) == 8
    server.scheduler._cache.reset()
    server.run([5] * 6, 4)
    server.run([6] * 8, 29)  # needs 9
    assert server.cached(first.input_ids + first.token_ids) == 4


@pytest.mark.parametrize("num_steps", range(6))
def test_only_the_kv_of_confirmed_tokens_is_kept(num_steps: int) -> None:
    """A request that is abandoned leaves what was computed, never what it had room for."""
    server = Server(page_size=1)
    request = server.add([3, 4, 5], 10)
    server.step(num_steps)
    server.scheduler.abort(request.uid)
    server.step()
    computed = 3 + num_steps - 1 if num_steps else 0
    assert server.cached([3, 4, 5, *server.engine.answer([3, 4, 5], 10)]) == computed


def test_freeing_a_request_twice_is_an_assertion_that_names_a_page() -> None:
    server = Server(page_size=4)
    request = server.add(list(range(3, 12)), 4)
    server.step()
    [own] = pages_of(request)[2:]  # nine tokens: two pages are the tree's
    server.scheduler._cache.free(request.req)
    with pytest.raises(AssertionError, match=rf"\b{own}\b"):
        server.scheduler._cache.free(request.req)


# --- in one run -----------------------------------------------------------------------------------


def test_the_turns_of_a_conversation_stay_one_run() -> None:
    server, history = Server(page_size=4, max_seq_len=160), [5] * 6
    for turn in range(6):
        request = server.add(history, 9)
        server.step()
        assert request.req.cache_handle.is_run, pages_of(request)
        assert request.num_cached_tokens == (0 if turn == 0 else (len(history) - 6) // 4 * 4)
        server.step(8)
        history = history + request.token_ids + [6] * 5


def test_a_follow_up_stays_one_run_though_a_smaller_hole_is_large_enough() -> None:
    server = Server(page_size=4)
    one, other = server.run_all([([5] * 9, 1), ([6] * 8, 1)])
    assert [pages_of(one), pages_of(other)] == [[0, 1, 2], [3, 4]]
    follow_up = server.add([*[6] * 8, 9], 4)
    server.step()  # page 2 is a hole: its one token made no whole page
    assert (follow_up.num_cached_tokens, pages_of(follow_up)) == (8, [3, 4, 5])


def test_where_the_pages_behind_the_prefix_are_taken_the_answer_is_the_same() -> None:
    server = Server(page_size=4, num_pages=20)
    server.run_all([([5] * 8, 1), ([6] * 8, 1)])
    follow_up = server.add([*[5] * 8, 9], 4)
    server.step()
    assert (follow_up.num_cached_tokens, follow_up.req.cache_handle.is_run) == (8, False)
    server.step(3)
    assert follow_up.token_ids == server.engine.answer(follow_up.input_ids, 4)


# --- room -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("prompt", "num_cached"), [([6] * 5, 4), ([5] * 5, 1)])
def test_only_what_is_lacking_is_evicted(prompt: list[int], num_cached: int) -> None:
    server = Server(page_size=1, num_pages=10)
    server.run([5] * 4)
    server.run([6] * 4)
    server.run([7] * 3, 3)  # needs 5 pages, and 2 are free
    assert server.cached(prompt) == num_cached


def test_a_prefix_that_a_request_counts_on_is_not_evicted_to_make_room_for_it() -> None:
    server = Server(page_size=1, num_pages=11)
    server.run([5] * 6)
    server.run([6] * 4)  # the younger one
    request = server.run([*[5] * 6, 7], 4)  # ten tokens: four pages more, and one is free
    assert request.num_cached_tokens == 6
    assert server.cached([6] * 3) == 1


def test_what_running_requests_read_is_no_room_for_others() -> None:
    server = Server(page_size=1, num_pages=10, max_seq_len=11)
    server.run([5] * 6)
    reader, other = server.add([*[5] * 6, 7], 3), server.add([8] * 3, 1)
    server.step()
    assert server.engine.batches[-1].keys() == {reader.uid}  # it needs nine pages
    server.step(3)
    assert [list(batch) for batch in server.engine.batches[-3:]] == [
        [reader.uid],
        [reader.uid],
        [other.uid],
    ]


def test_a_request_that_needs_the_whole_pool_gets_it_when_nobody_runs() -> None:
    server = Server(page_size=4, num_pages=8)
    for token in range(5, 10):
        server.run([token] * 30, 3)  # 32 tokens with KV: all pages, whatever is known


@pytest.mark.parametrize(("token", "num_cached"), [(5, 8), (6, 0), (7, 8)])
def test_the_oldest_prompts_are_forgotten_first(token: int, num_cached: int) -> None:
    server = Server(page_size=4, num_pages=7)
    for known in (5, 6, 7, 5):  # three prompts leave two pages each
        server.run([known] * 8)
    server.run([8] * 9)  # needs three pages, of which one is free
    assert server.cached([token] * 9) == num_cached


# --- the check itself -----------------------------------------------------------------------------


def test_the_check_finds_a_lost_page_and_a_page_with_two_owners() -> None:
    cache = make_cache(6, 1)
    [page] = cache._allocator.allocate(1)
    with pytest.raises(AssertionError):
        cache.check_invariants([])
    cache._allocator.free([page])
    cache.check_invariants([])
    cache._tree.insert([1], [page])
    with pytest.raises(AssertionError):
        cache.check_invariants([])


def test_the_check_finds_a_lock_that_no_request_holds() -> None:
    server = Server(page_size=1)
    server.run([5, 6, 7])
    tree = server.scheduler._cache._tree
    handle = tree.match([5, 6, 7])
    tree.lock(handle)
    with pytest.raises(AssertionError):
        server.scheduler.check_invariants()
    tree.unlock(handle)
    server.scheduler.check_invariants()


def test_the_check_finds_a_request_that_reads_elsewhere_than_in_the_tree() -> None:
    server = Server(page_size=1)
    request = server.add([5, 6, 7], 2)
    server.step()
    pages_of(request)[0] += 20
    with pytest.raises(AssertionError):
        server.scheduler.check_invariants()


# --- random requests ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("page_size", "num_pages"),
    [(1, 24), (1, 60), (2, 5), (2, 20), (3, 14), (4, 4), (4, 12), (8, 6), (16, 4)],
)
def test_random_requests_on_a_tight_pool_get_what_they_get_alone(
    page_size: int, num_pages: int, seed: int
) -> None:
    """Of two letters, so that prefixes meet, duplicates come together, and much is evicted."""
    chance = random.Random(seed)
    most = min(40, num_pages * page_size + 1)
    server = Server(2, page_size=page_size, num_pages=num_pages, max_seq_len=most)
    num_cached = 0
    for _ in range(25):
        wanted = []
        for _ in range(chance.randint(1, 6)):
            prompt = [3 + chance.randrange(2)] * chance.randint(1, most - 1)
            at = chance.randrange(len(prompt))
            prompt[at:] = [3 + chance.randrange(2)] * (len(prompt) - at)
            wanted.append((prompt, chance.randint(1, min(12, most - len(prompt)))))
        num_cached += sum(request.num_cached_tokens for request in server.run_all(wanted))
    assert num_cached > 20


# --- LLM ------------------------------------------------------------------------------------------


def make_llm(folder: Path, **options: Any) -> LLM:
    defaults = {"max_seq_len": 96, "page_size": 4}
    options = defaults | {"num_pages": 480 // options.get("page_size", 4)} | options
    return LLM(folder, **options)


def up_to(max_tokens: int) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, ignore_eos=True)


def prompt_of(length: int, seed: int = 0, letters: int = 380) -> list[int]:
    chance = random.Random(seed)
    return [3 + chance.randrange(letters) for _ in range(length)]


def assert_all_free(llm: LLM) -> None:
    """Nobody runs: each page is free or the tree's, and no lock is left."""
    llm.scheduler.step()
    llm.scheduler.check_invariants()


@page_sizes
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_a_prompt_sent_twice_gets_the_same_answer_and_says_what_was_cached(
    page_size: int, beside: int, tiny_model: TinyModel
) -> None:
    length = 2 * page_size + beside
    with make_llm(tiny_model("llama"), page_size=page_size) as llm:
        cold, warm = (llm.generate(prompt_of(length), up_to(6))[0] for _ in range(2))
        assert_all_free(llm)
    assert cold.num_cached_tokens == 0
    assert warm.num_cached_tokens == (length - 1) // page_size * page_size
    assert warm.token_ids == cold.token_ids


def test_only_what_is_not_cached_is_computed(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[int] = []
    with make_llm(tiny_model("llama")) as llm:
        original = llm.engine.forward_batch

        def spy(batch: Batch) -> ForwardOutput:
            computed.append(len(batch.input_ids))
            return original(batch)

        monkeypatch.setattr(llm.engine, "forward_batch", spy)
        prompt = prompt_of(30)
        llm.generate(prompt, up_to(1))
        llm.generate(prompt, up_to(1))
        llm.generate(prompt[:21] + prompt_of(4, seed=1), up_to(1))
    assert computed == [30, 2, 5]


def test_a_follow_up_gets_the_answer_that_no_cache_would_change(tiny_model: TinyModel) -> None:
    question = prompt_of(9)
    with make_llm(tiny_model("qwen2")) as llm:
        [turn] = llm.generate(question, up_to(12))
        history = question + turn.token_ids + prompt_of(5, seed=1)
        [warm] = llm.generate(history, up_to(8))
    with make_llm(tiny_model("qwen2")) as llm:
        [cold] = llm.generate(history, up_to(8))
    assert (warm.num_cached_tokens, warm.token_ids) == (20, cold.token_ids)


def test_hits_and_new_prompts_share_a_batch(tiny_model: TinyModel) -> None:
    known, new = prompt_of(22), prompt_of(7, seed=1)
    with make_llm(tiny_model("qwen3")) as llm:
        prompts = [new, known, known[:13] + new, [9]]
        alone = []
        for prompt in prompts:  # each on a cache that knows nothing of it
            with make_llm(tiny_model("qwen3")) as fresh:
                alone.append(fresh.generate(prompt, up_to(9))[0].token_ids)
        llm.generate(known, up_to(1))
        outputs = llm.generate(prompts, up_to(9))
        assert_all_free(llm)
    assert [output.num_cached_tokens for output in outputs] == [0, 20, 12, 0]
    assert [output.token_ids for output in outputs] == alone


@page_sizes
def test_three_identical_prompts_in_one_batch_on_a_tiny_pool_get_the_lone_runs_answer(
    page_size: int, tiny_model: TinyModel
) -> None:
    """Who frees its copy of a prefix must not go on reading it: the pages have a new owner."""
    prompt, num_pages = prompt_of(6), -(-54 // page_size) + 3
    options = {"page_size": page_size, "num_pages": num_pages, "max_seq_len": 18}
    with make_llm(tiny_model("llama"), **options) as llm:
        [alone] = llm.generate(prompt, up_to(12))
    with make_llm(tiny_model("llama"), **options) as llm:
        together = llm.generate([prompt] * 3, up_to(12))
        assert_all_free(llm)
    assert [output.token_ids for output in together] == [alone.token_ids] * 3
    assert [output.num_cached_tokens for output in together] == [0, 0, 0]


@pytest.mark.parametrize("seed", range(4))
def test_prompts_of_two_letters_on_a_tight_pool_get_the_lone_runs_answers(
    seed: int, tiny_model: TinyModel
) -> None:
    """Shared prefixes, duplicates and evictions all at once."""
    chance = random.Random(seed)
    prompts = [prompt_of(chance.randint(1, 12), n, letters=2) for n in range(12)]
    params = [up_to(chance.randint(1, 12)) for _ in prompts]
    page_size = [1, 3, 4, 16][seed]
    with make_llm(tiny_model("llama"), max_running_reqs=1, page_size=16) as llm:
        alone = [output.token_ids for output in llm.generate(prompts, params)]
    tight = {"page_size": page_size, "num_pages": 48 // page_size, "max_seq_len": 24}
    with make_llm(tiny_model("llama"), **tight) as llm:
        for _ in range(3):  # cold, warm, and after what the second round evicted
            assert [output.token_ids for output in llm.generate(prompts, params)] == alone
            assert_all_free(llm)


@pytest.mark.parametrize("num_read", [1, 2, 7])
def test_a_stream_closed_half_way_leaves_what_it_has_computed(
    num_read: int, tiny_model: TinyModel
) -> None:
    prompt = prompt_of(6)
    with make_llm(tiny_model("llama"), page_size=1) as llm:
        stream = llm.stream(prompt, up_to(20))
        text = prompt + [token for _ in range(num_read) for token in next(stream).token_ids]
        stream.close()  # type: ignore[attr-defined]  # a generator
        [warm] = llm.generate([*text, 5], up_to(6))
        assert_all_free(llm)
    with make_llm(tiny_model("llama"), page_size=1) as llm:
        [cold] = llm.generate([*text, 5], up_to(6))
    # The last token that was read has no KV yet.
    assert (warm.num_cached_tokens, warm.token_ids) == (len(text) - 1, cold.token_ids)


def test_streams_and_chats_use_the_cache_too(tiny_model: TinyModel) -> None:
    messages = [{"role": "user", "content": "The engine reads a prompt."}]
    with make_llm(tiny_model("llama")) as llm:
        cold = llm.chat(messages, up_to(5))
        warm = llm.chat(messages, up_to(5))
        streamed = [token for piece in llm.stream(messages, up_to(5)) for token in piece.token_ids]
        assert_all_free(llm)
    assert cold.num_cached_tokens == 0
    assert warm.num_cached_tokens == (cold.num_prompt_tokens - 1) // 4 * 4
    assert cold.token_ids == warm.token_ids == streamed


@pytest.mark.slow
def test_the_real_model_answers_warm_as_cold(real_model: Path) -> None:
    questions = ["What is the capital of France?", "请解释什么是 KV Cache？"]
    prompts = [[{"role": "user", "content": question}] for question in questions]
    with LLM(real_model, max_seq_len=128) as llm:
        first, second = (llm.generate(prompts, SamplingParams(max_tokens=12)) for _ in range(2))
        assert_all_free(llm)
    assert [output.token_ids for output in second] == [output.token_ids for output in first]
    assert [output.num_cached_tokens for output in first] == [0, 0]
    for output in second:
        assert output.num_cached_tokens == (output.num_prompt_tokens - 1) // 16 * 16
