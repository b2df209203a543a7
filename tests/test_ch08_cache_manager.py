"""Chapter 8, the manager and `LLM`: a prefix computed once is read by all who share it.

The manager runs against a fake engine. Its "KV" of a token is the whole text up to there, and its
next token is a hash of what it reads back through the page table: a page that is read after it
was given away is a wrong answer at once, without a model.
"""

import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.engine import ForwardOutput
from minisgl.kvcache.manager import CacheManager
from minisgl.llm import LLM

TinyModel = Callable[[str], Path]
Text = tuple[int, ...]

page_sizes = pytest.mark.parametrize("page_size", [1, 3, 4, 16])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def next_token(text: Text) -> int:
    return zlib.crc32(bytes(text)) % 2


def answer(prompt: list[int], num_tokens: int) -> list[int]:
    """What a request gets that is computed alone, without any cache."""
    text = tuple(prompt)
    for _ in range(num_tokens):
        text += (next_token(text),)
    return list(text[len(prompt) :])


class FakeEngine:
    """A cache manager, and requests that are computed as `LLM` does it, by hashing."""

    def __init__(self, num_pages: int, page_size: int, num_rows: int = 8) -> None:
        self.page_size = page_size
        self.page_table = torch.zeros(num_rows, 100, dtype=torch.int32)
        self.cache = CacheManager(num_pages, page_size, self.page_table)
        self.kv: list[Text | None] = [None] * (num_pages * page_size)
        self.free_rows = list(range(num_rows))
        self.running: list[Req] = []

    def admit(self, prompt: list[int], output_len: int) -> Req | None:
        handle = self.cache.match_req(prompt)
        self.cache.tree.lock(handle)
        fits = self.cache.can_allocate(len(prompt) + output_len, handle)
        if not self.free_rows or not fits:
            self.cache.tree.unlock(handle)
            return None
        ids, row = torch.tensor(prompt, dtype=torch.int32), self.free_rows.pop()
        req = Req(ids, row, handle.cached_len, output_len, 0, SamplingParams(), handle)
        self.cache.allocate(req)
        self.running.append(req)
        return req

    def must_admit(self, prompt: list[int], output_len: int = 1) -> Req:
        req = self.admit(prompt, output_len)
        assert req is not None, f"there should be room for {prompt}"
        return req

    def step(self, *reqs: Req) -> None:
        """One forward pass: all KV is written before any is read."""
        is_prefill = any(req.extend_len > 1 for req in reqs)
        for req in reqs:
            text = tuple(req.input_ids.tolist())
            for position in range(req.cached_len, req.device_len):
                self.kv[self.places(req)[position]] = text[: position + 1]
        for req in reqs:
            read = [self.kv[place] for place in self.places(req)[: req.device_len]]
            text = tuple(req.input_ids.tolist())
            wrong = [n for n, found in enumerate(read) if found != text[: n + 1]]
            assert not wrong, f"{req!r} reads the KV of another text at {wrong}"
            req.complete_one()
            req.append_host(torch.tensor([next_token(text)], dtype=torch.int32))
        if is_prefill:
            for req in reqs:
                self.cache.cache_req(req)

    def places(self, req: Req) -> list[int]:
        return self.page_table[req.table_idx, : req.max_device_len].tolist()

    def free(self, req: Req) -> None:
        self.cache.free(req)
        self.running.remove(req)
        self.free_rows.append(req.table_idx)

    def run(self, prompt: list[int], output_len: int = 1) -> list[int]:
        """Compute a request to its end, and say what it got."""
        req = self.must_admit(prompt, output_len)
        while len(req.input_ids) < req.max_device_len:
            self.step(req)
        self.free(req)
        return req.input_ids[len(prompt) :].tolist()

    def check(self) -> None:
        self.cache.check_invariants(self.running)


def num_known(engine: FakeEngine, text: list[int]) -> int:
    return engine.cache.tree.match(text).cached_len


# --- what a prompt is matched with ----------------------------------------------------------------


@page_sizes
@pytest.mark.parametrize("pages", [1, 2, 4])
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_a_prompt_sent_twice_is_computed_from_its_last_whole_page_on(
    page_size: int, pages: int, beside: int
) -> None:
    """k pages, one token less, one more; and never is the whole prompt taken from the cache."""
    length = max(1, pages * page_size + beside)
    engine, prompt = FakeEngine(20, page_size), list(range(length))
    first = engine.run(prompt)
    req = engine.must_admit(prompt)
    assert req.cached_len == (length - 1) // page_size * page_size < length
    engine.step(req)
    assert req.input_ids[length:].tolist() == first
    engine.free(req)
    engine.check()


@page_sizes
@pytest.mark.parametrize("common", [0, 1, 3, 4, 5, 15, 16, 17, 20])
def test_a_prefix_may_end_before_on_or_after_the_border_of_a_page(
    page_size: int, common: int
) -> None:
    engine = FakeEngine(60, page_size)
    one, other = [1] * 20, [1] * common + [2] * 20
    engine.run(one)
    req = engine.must_admit(other, 3)
    assert req.cached_len == common // page_size * page_size
    while len(req.input_ids) < req.max_device_len:
        engine.step(req)
    assert req.input_ids[len(other) :].tolist() == answer(other, 3)
    engine.free(req)
    engine.check()


def test_a_follow_up_finds_the_answer_of_the_turn_before() -> None:
    engine, prompt = FakeEngine(40, page_size=4), list(range(10))
    history = prompt + engine.run(prompt, 8)
    # The KV of the last token was never computed: 17 of 18 are there, in four whole pages.
    assert engine.must_admit([*history, 7, 7], 4).cached_len == 16


# --- whose pages are whose ------------------------------------------------------------------------


def test_a_request_reads_the_shared_pages_and_writes_its_own() -> None:
    engine = FakeEngine(20, page_size=4)
    engine.run(list(range(12)))
    shared = engine.cache.tree.match(list(range(8))).pages()
    req = engine.must_admit([*range(8), 50, 51], 3)
    pages = [place // 4 for place in engine.places(req)[::4]]
    assert pages[:2] == shared
    assert not set(pages[2:]) & set(engine.cache.tree.pages())
    assert [place % 4 for place in engine.places(req)] == [n % 4 for n in range(13)]
    engine.check()


@page_sizes
def test_the_page_table_points_to_the_trees_copy_once_the_duplicate_is_freed(
    page_size: int,
) -> None:
    engine, prompt = FakeEngine(80, page_size), [5] * 33
    one, other = engine.must_admit(prompt, 4), engine.must_admit(prompt, 4)
    assert not set(engine.places(one)) & set(engine.places(other))
    engine.step(one, other)
    shared = 33 // page_size * page_size
    assert engine.places(one)[:shared] == engine.places(other)[:shared]
    assert not set(engine.places(one)[shared:]) & set(engine.places(other)[shared:])
    engine.check()
    for _ in range(3):
        engine.step(one, other)
    assert one.input_ids.tolist() == other.input_ids.tolist() == prompt + answer(prompt, 4)


def test_the_duplicates_of_a_request_that_had_a_prefix_are_freed_too() -> None:
    engine = FakeEngine(40, page_size=4)
    engine.run([5] * 8)
    prompt = [5] * 8 + [6] * 9
    one, other = engine.must_admit(prompt, 4), engine.must_admit(prompt, 4)
    assert one.cached_len == other.cached_len == 8
    free = engine.cache.allocator.num_free
    engine.step(one, other)
    assert engine.cache.allocator.num_free == free + 2
    engine.check()


def test_what_ends_is_kept_for_others_in_whole_pages_and_the_rest_is_free() -> None:
    engine = FakeEngine(10, page_size=4)
    req = engine.must_admit(list(range(6)), 20)
    engine.step(req)
    assert (engine.cache.allocator.num_free, engine.cache.tree.num_locked) == (3, 1)
    for _ in range(3):  # 9 tokens have KV now, a tenth is known
        engine.step(req)
    engine.free(req)
    assert (engine.cache.allocator.num_free, engine.cache.tree.num_evictable) == (8, 2)
    assert num_known(engine, req.input_ids.tolist()) == 8
    engine.check()


@pytest.mark.parametrize("num_steps", range(6))
def test_only_the_kv_of_confirmed_tokens_enters_the_tree(num_steps: int) -> None:
    """A request that is abandoned leaves what was computed, never what it had room for."""
    engine = FakeEngine(30, page_size=1)
    req = engine.must_admit([1, 2, 3], 10)
    for _ in range(num_steps):
        engine.step(req)
    engine.free(req)
    computed = 3 + num_steps - 1 if num_steps else 0
    assert num_known(engine, [1, 2, 3, *answer([1, 2, 3], 10)]) == computed
    assert engine.cache.allocator.num_free == 30 - computed
    engine.check()


def test_freeing_a_request_twice_is_an_assertion_that_names_the_page() -> None:
    engine = FakeEngine(10, page_size=4)
    req = engine.must_admit(list(range(9)), 4)
    engine.step(req)
    own = {place // 4 for place in engine.places(req)[8:]}  # nine tokens: two pages are the tree's
    engine.cache.free(req)
    with pytest.raises(AssertionError, match=f"page [{own}] is free already"):
        engine.cache.free(req)


# --- room -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page_size", [1, 3, 4, 16])
def test_room_is_counted_in_whole_pages(page_size: int) -> None:
    engine = FakeEngine(3, page_size)
    nothing = engine.cache.match_req([1])
    assert engine.cache.can_allocate(3 * page_size, nothing)
    assert not engine.cache.can_allocate(3 * page_size + 1, nothing)
    engine.must_admit([1], page_size)  # page_size + 1 tokens: two pages
    assert engine.cache.can_allocate(page_size, nothing)
    assert not engine.cache.can_allocate(page_size + 1, nothing)


def test_an_allocation_evicts_only_what_it_lacks() -> None:
    engine = FakeEngine(10, page_size=1)
    engine.run([1] * 4)
    engine.run([2] * 4)
    assert engine.cache.allocator.num_free == 2
    engine.must_admit([3] * 3, 2)
    assert num_known(engine, [1] * 4) == 1
    assert num_known(engine, [2] * 4) == 4
    engine.check()


def test_a_prefix_that_a_request_counts_on_is_not_evicted_to_make_room_for_it() -> None:
    engine = FakeEngine(11, page_size=1)
    engine.run([1] * 6)
    engine.run([2] * 4)  # the younger one
    req = engine.must_admit([*[1] * 6, 3], 3)
    assert (req.cached_len, num_known(engine, [2] * 4)) == (6, 1)
    engine.step(req)
    engine.check()


def test_what_running_requests_read_is_no_room_for_others() -> None:
    engine = FakeEngine(10, page_size=1)
    engine.run([1] * 6)
    reader = engine.must_admit([*[1] * 6, 3], 2)
    assert engine.admit([4, 4], 1) is None
    engine.check()  # who was refused has left nothing behind
    engine.free(reader)
    assert engine.admit([4, 4], 1) is not None


def test_a_prompt_that_needs_the_whole_pool_gets_it_when_nobody_runs() -> None:
    engine = FakeEngine(8, page_size=4)
    for start in range(5):
        prompt = [start] * 30
        assert engine.run(prompt, 2) == answer(prompt, 2)
    engine.check()


# --- the check itself -----------------------------------------------------------------------------


def test_the_check_finds_a_lost_page_and_a_page_with_two_owners() -> None:
    engine = FakeEngine(6, page_size=1)
    [page] = engine.cache.allocator.allocate(1)
    with pytest.raises(AssertionError, match="pages with 0 or 2 owners"):
        engine.check()
    engine.cache.allocator.free([page])
    engine.check()
    engine.cache.tree.insert([1], [page])
    with pytest.raises(AssertionError, match="pages with 0 or 2 owners"):
        engine.check()


def test_the_check_finds_a_lock_that_no_request_holds() -> None:
    engine = FakeEngine(6, page_size=1)
    engine.run([1, 2, 3])
    handle = engine.cache.match_req([1, 2, 3])
    engine.cache.tree.lock(handle)
    with pytest.raises(AssertionError, match="1 locks on"):
        engine.check()
    engine.cache.tree.unlock(handle)
    engine.check()


def test_the_check_finds_a_request_that_reads_elsewhere_than_in_the_tree() -> None:
    engine = FakeEngine(20, page_size=1)
    one, other = engine.must_admit([1, 2, 3]), engine.must_admit([1, 2, 3])
    own = engine.page_table[other.table_idx].clone()
    engine.step(one, other)
    engine.check()
    engine.page_table[other.table_idx] = own
    with pytest.raises(AssertionError, match="does not read"):
        engine.check()


# --- random requests ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page_size", "num_pages"),
    [(1, 24), (1, 60), (2, 5), (2, 20), (3, 14), (4, 4), (4, 12), (8, 6), (16, 4)],
)
def test_random_requests_keep_every_law(page_size: int, num_pages: int) -> None:
    """Admitted, computed in any company, finished or abandoned at any moment, on a tight pool."""
    chance = random.Random(num_pages)
    engine = FakeEngine(num_pages, page_size)
    num_cached = num_finished = 0
    for _ in range(1000):
        operation = chance.choice(["admit", "admit", "step", "step", "step", "finish", "abandon"])
        if operation == "admit":
            most = min(40, num_pages * page_size)
            prompt = [chance.randrange(2)] * chance.randint(1, most - 1)
            prompt[len(prompt) // 2 :] = [chance.randrange(2)] * (len(prompt) - len(prompt) // 2)
            req = engine.admit(prompt, chance.randint(1, min(12, most - len(prompt))))
            if req is None:
                assert engine.running, "alone, every request fits that the pool can hold"
            else:
                num_cached += req.cached_len
        elif operation == "step":
            unfinished = [one for one in engine.running if len(one.input_ids) < one.max_device_len]
            engine.step(*chance.sample(unfinished, chance.randint(0, len(unfinished))))
        elif operation == "finish":
            for req in list(engine.running):
                if len(req.input_ids) == req.max_device_len:
                    prompt = req.input_ids[: req.prompt_len].tolist()
                    assert req.input_ids[req.prompt_len :].tolist() == answer(
                        prompt, req.output_len
                    )
                    engine.free(req)
                    num_finished += 1
        elif engine.running and chance.random() < 0.3:
            engine.free(chance.choice(engine.running))
        engine.check()
    assert num_finished > 20
    assert num_cached > 20
    for req in list(engine.running):
        engine.free(req)
    engine.check()
    tree, allocator = engine.cache.tree, engine.cache.allocator
    assert (tree.num_locked, allocator.num_free + tree.num_evictable) == (0, num_pages)


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


def check_free(llm: LLM) -> None:
    """Nobody runs: each page is free or the tree's, and no lock is left."""
    llm._cache.check_invariants([])
    assert llm._table.num_free_rows == llm.engine.config.max_running_reqs


@page_sizes
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_a_prompt_sent_twice_gets_the_same_answer_and_says_what_was_cached(
    page_size: int, beside: int, tiny_model: TinyModel
) -> None:
    length = 2 * page_size + beside
    with make_llm(tiny_model("llama"), page_size=page_size) as llm:
        cold, warm = (llm.generate(prompt_of(length), up_to(6))[0] for _ in range(2))
        check_free(llm)
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
        check_free(llm)
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
        check_free(llm)
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
            check_free(llm)


@pytest.mark.parametrize("num_read", [1, 2, 7])
def test_a_stream_closed_half_way_leaves_only_confirmed_tokens(
    num_read: int, tiny_model: TinyModel
) -> None:
    prompt = prompt_of(6)
    with make_llm(tiny_model("llama"), page_size=1) as llm:
        stream = llm.stream(prompt, up_to(20))
        text = prompt + [token for _ in range(num_read) for token in next(stream).token_ids]
        stream.close()  # type: ignore[attr-defined]  # a generator
        check_free(llm)
        # The last token that was read has no KV yet.
        assert llm._cache.tree.match([*text, 5]).cached_len == len(text) - 1
        [warm] = llm.generate([*text, 5], up_to(6))
    with make_llm(tiny_model("llama"), page_size=1) as llm:
        [cold] = llm.generate([*text, 5], up_to(6))
    assert (warm.num_cached_tokens, warm.token_ids) == (len(text) - 1, cold.token_ids)


def test_an_interrupt_while_a_batch_is_admitted_leaves_nothing_behind(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_llm(tiny_model("llama")) as llm:
        admit = llm._admit
        admitted: list[Any] = []

        def interrupted(pending: Any) -> Any:
            if len(admitted) == 2:
                raise KeyboardInterrupt
            admitted.append(pending)
            return admit(pending)

        monkeypatch.setattr(llm, "_admit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            llm.generate([prompt_of(5), prompt_of(6, seed=1), prompt_of(5)], up_to(2))
        check_free(llm)


def test_a_stream_keeps_its_prefix_while_others_need_its_pages(tiny_model: TinyModel) -> None:
    prompt, others = prompt_of(16), [prompt_of(20, seed) for seed in range(1, 7)]
    tight = {"page_size": 4, "num_pages": 14, "max_seq_len": 28}
    with make_llm(tiny_model("llama"), **tight) as llm:
        [expected] = llm.generate(prompt, up_to(12))
        stream = llm.stream(prompt, up_to(12))
        tokens = list(next(stream).token_ids)
        for other in others:  # each one needs the pages of the one before
            llm.generate(other, up_to(4))
        tokens += [token for piece in stream for token in piece.token_ids]
        check_free(llm)
    assert tokens == expected.token_ids


def test_a_prompt_is_shared_as_soon_as_it_is_computed(tiny_model: TinyModel) -> None:
    """Not only when the request that brought it has ended."""
    prompt = prompt_of(13)
    with make_llm(tiny_model("llama")) as llm:
        stream = llm.stream(prompt, up_to(6))
        first = next(stream).token_ids
        [beside] = llm.generate(prompt, up_to(6))
        rest = [token for piece in stream for token in piece.token_ids]
    assert (beside.num_cached_tokens, beside.token_ids) == (12, [*first, *rest])


def test_the_oldest_prompts_are_forgotten_first(tiny_model: TinyModel) -> None:
    one, two, three = (prompt_of(8, seed) for seed in range(3))
    with make_llm(tiny_model("llama"), page_size=4, num_pages=7, max_seq_len=12) as llm:
        for prompt in (one, two, three, one):  # three prompts leave two pages each
            llm.generate(prompt, up_to(1))
        llm.generate(prompt_of(8, seed=3), up_to(1))  # needs three pages, two of them taken
        cached = [llm._cache.tree.match(prompt).cached_len for prompt in (one, two, three)]
    assert cached == [8, 0, 8]


def test_streams_and_chats_use_the_cache_too(tiny_model: TinyModel) -> None:
    messages = [{"role": "user", "content": "The engine reads a prompt."}]
    with make_llm(tiny_model("llama")) as llm:
        cold = llm.chat(messages, up_to(5))
        warm = llm.chat(messages, up_to(5))
        streamed = [token for piece in llm.stream(messages, up_to(5)) for token in piece.token_ids]
        check_free(llm)
    assert cold.num_cached_tokens == 0
    assert warm.num_cached_tokens == (cold.num_prompt_tokens - 1) // 4 * 4
    assert cold.token_ids == warm.token_ids == streamed


@pytest.mark.slow
def test_the_real_model_answers_warm_as_cold(real_model: Path) -> None:
    questions = ["What is the capital of France?", "请解释什么是 KV Cache？"]
    prompts = [[{"role": "user", "content": question}] for question in questions]
    with LLM(real_model, max_seq_len=128) as llm:
        first, second = (llm.generate(prompts, SamplingParams(max_tokens=12)) for _ in range(2))
        check_free(llm)
    assert [output.token_ids for output in second] == [output.token_ids for output in first]
    assert [output.num_cached_tokens for output in first] == [0, 0]
    for output in second:
        assert output.num_cached_tokens == (output.num_prompt_tokens - 1) // 16 * 16
