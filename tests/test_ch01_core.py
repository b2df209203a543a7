"""Chapter 1: the three lengths of a request, who fills a batch, and the one current batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import pytest
import torch

from minisgl.core import (
    Batch,
    Context,
    Req,
    SamplingParams,
    get_global_ctx,
    reset_global_ctx,
    set_global_ctx,
)

NO_HANDLE: Any = None  # there is no prefix cache that could lock anything


def make_req(prompt_len: int = 5, max_tokens: int = 3, cached_len: int = 0, uid: int = 0) -> Req:
    return Req(
        input_ids=torch.arange(prompt_len, dtype=torch.int32),
        table_idx=0,
        cached_len=cached_len,
        output_len=max_tokens,
        uid=uid,
        sampling_params=SamplingParams(max_tokens=max_tokens),
        cache_handle=NO_HANDLE,
    )


def lengths(req: Req) -> tuple[int, int, int, int]:
    return req.cached_len, req.device_len, req.extend_len, req.remain_len


def one_token(value: int) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.int32)


@contextmanager
def global_ctx(ctx: Context) -> Iterator[None]:
    """A process-wide context that the next test does not find."""
    set_global_ctx(ctx)
    try:
        yield
    finally:
        reset_global_ctx()


# --- SamplingParams ---------------------------------------------------------------------------


@pytest.mark.guard
def test_sampling_params_are_the_five_in_their_order() -> None:
    defaults = [(f.name, f.default) for f in fields(SamplingParams)]
    assert defaults[:5] == [
        ("temperature", 0.0),
        ("top_k", -1),
        ("top_p", 1.0),
        ("ignore_eos", False),
        ("max_tokens", 1024),
    ]


@pytest.mark.parametrize(
    ("params", "greedy"),
    [
        ({}, True),
        ({"temperature": -1.0}, True),
        ({"temperature": 1e-6}, False),
        ({"temperature": 0.8}, False),
        ({"temperature": 0.8, "top_k": 1}, True),
        ({"temperature": 0.8, "top_k": 2}, False),
        ({"temperature": 0.0, "top_k": 50}, True),
        ({"temperature": 0.0, "top_p": 0.9}, False),  # right result, but by way of the filter
        ({"temperature": 0.8, "top_k": 1, "top_p": 0.9}, False),
    ],
)
def test_is_greedy_at_its_edges(params: dict[str, Any], greedy: bool) -> None:
    assert SamplingParams(**params).is_greedy is greedy


# --- Req: three lengths -----------------------------------------------------------------------


def test_req_lengths_through_prefill_and_decode() -> None:
    req = make_req(prompt_len=5, max_tokens=3, cached_len=2)
    assert lengths(req) == (2, 5, 3, 3)
    req.complete_one()  # the prefill: five tokens are cached, position 5 comes next
    assert lengths(req) == (5, 6, 1, 2)
    assert req.can_decode
    req.complete_one()
    assert lengths(req) == (6, 7, 1, 1)
    req.complete_one()
    assert lengths(req) == (7, 8, 1, 0)
    assert not req.can_decode


def test_self_test_a_prompt_of_six_with_two_hits_computes_four() -> None:
    req = make_req(prompt_len=6, max_tokens=3, cached_len=2)
    assert (req.extend_len, req.device_len) == (4, 6)
    req.complete_one()
    assert (req.cached_len, req.device_len) == (6, 7)


def test_exercise_1_a_prompt_of_a_hundred_with_64_hits() -> None:
    req = make_req(prompt_len=100, max_tokens=50, cached_len=64)
    assert (req.cached_len, req.device_len, req.remain_len) == (64, 100, 50)
    req.complete_one()
    assert (req.cached_len, req.device_len, req.remain_len) == (100, 101, 49)
    for _ in range(10):
        req.complete_one()
    assert (req.cached_len, req.device_len, req.remain_len) == (110, 111, 39)


def test_exercise_2_comparison_by_value_could_not_be_hashed_or_compared() -> None:
    @dataclass  # eq=True, the default: fields are compared, and __hash__ becomes None
    class ReqByValue(Req):
        pass

    def twin() -> ReqByValue:
        return ReqByValue(
            input_ids=torch.arange(5, dtype=torch.int32),
            table_idx=0,
            cached_len=0,
            output_len=3,
            uid=0,
            sampling_params=SamplingParams(),
            cache_handle=NO_HANDLE,
        )

    with pytest.raises(TypeError, match="unhashable"):
        {twin()}
    with pytest.raises(RuntimeError, match="ambiguous"):  # tensors have no single truth value
        _ = twin() == twin()


def test_exercise_3_at_least_one_token_is_left_to_compute() -> None:
    with pytest.raises(AssertionError):
        make_req(prompt_len=5, cached_len=5)
    assert make_req(prompt_len=5, cached_len=4).extend_len == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"cached_len": -1},
        {"cached_len": 6},
        {"prompt_len": 0},
        {"max_tokens": -1},
    ],
)
def test_lengths_are_ordered_from_the_start(bad: dict[str, int]) -> None:
    with pytest.raises(AssertionError):
        make_req(**bad)


def test_a_request_that_may_generate_nothing_can_still_be_prefilled() -> None:
    req = make_req(prompt_len=5, max_tokens=0)
    assert req.device_len == req.max_device_len == 5
    assert not req.can_decode


def test_the_prompt_stays_on_the_cpu() -> None:
    with pytest.raises(AssertionError):
        Req(
            input_ids=torch.arange(5, dtype=torch.int32, device="meta"),
            table_idx=0,
            cached_len=0,
            output_len=3,
            uid=0,
            sampling_params=SamplingParams(),
            cache_handle=NO_HANDLE,
        )


def test_two_requests_with_the_same_prompt_stay_two() -> None:
    first, second = make_req(), make_req()
    assert first != second
    running = {first, second}
    assert len(running) == 2
    running.discard(first)
    assert running == {second}


def test_a_request_keeps_its_place_in_a_set_while_it_moves_on() -> None:
    req = make_req()
    running = {req}
    req.complete_one()
    req.append_host(one_token(100))
    assert req in running


# --- Req: the tokens that are known -----------------------------------------------------------


def test_append_host_adds_the_sampled_tokens_behind_the_prompt() -> None:
    req = make_req(prompt_len=3, max_tokens=2)
    req.append_host(one_token(100))
    req.append_host(one_token(101))
    assert req.input_ids.tolist() == [0, 1, 2, 100, 101]
    assert req.input_ids.dtype == torch.int32
    assert req.input_ids.is_cpu


def test_append_host_moves_no_length() -> None:
    req = make_req()
    before = lengths(req), req.max_device_len
    req.append_host(one_token(100))
    assert (lengths(req), req.max_device_len) == before


def test_append_host_copies_no_history() -> None:
    req = make_req()
    prompt = req.input_ids
    req.append_host(one_token(100))
    assert req.input_ids.data_ptr() == prompt.data_ptr()
    assert prompt.tolist() == [0, 1, 2, 3, 4]


def test_appending_leaves_the_caller_s_prompt_alone() -> None:
    prompt = torch.arange(8, dtype=torch.int32)
    req = Req(prompt[:5], 0, 0, 3, 0, SamplingParams(), NO_HANDLE)
    req.append_host(one_token(100))
    assert prompt.tolist() == list(range(8))


def test_append_host_refuses_more_than_max_tokens() -> None:
    req = make_req(max_tokens=1)
    req.append_host(one_token(100))
    with pytest.raises(AssertionError):
        req.append_host(one_token(101))


def test_the_last_token_is_an_output_only() -> None:
    req = make_req(prompt_len=6, max_tokens=3, cached_len=2)
    for token in (100, 101, 102):
        req.complete_one()
        req.append_host(one_token(token))
    assert not req.can_decode
    assert len(req.input_ids) == req.device_len == 9
    assert req.cached_len == 8  # nobody computes the KV of token 102


def test_repr_shows_who_and_how_far() -> None:
    req = make_req(prompt_len=6, max_tokens=3, cached_len=2, uid=7)
    expected = "Req(uid=7, table_idx=0, cached_len=2, device_len=6, max_device_len=9)"
    assert repr(req) == expected


# --- Batch ------------------------------------------------------------------------------------


def test_a_batch_is_either_a_prefill_or_a_decode() -> None:
    prefill, decode = Batch(reqs=[], phase="prefill"), Batch(reqs=[], phase="decode")
    assert prefill.is_prefill and not prefill.is_decode
    assert decode.is_decode and not decode.is_prefill


def test_self_test_padded_reqs_are_the_real_ones_and_dummies() -> None:
    real, dummy = [make_req(uid=0), make_req(uid=1), make_req(uid=2)], make_req(uid=-1)
    batch = Batch(reqs=real, phase="decode")
    batch.padded_reqs = [*real, dummy]
    assert (batch.size, batch.padded_size) == (3, 4)


@pytest.mark.guard
def test_a_new_batch_holds_only_what_it_was_given() -> None:
    batch = Batch(reqs=[], phase="prefill")
    given = [f.name for f in fields(Batch) if f.init]
    filled_in_later = [f.name for f in fields(Batch) if not f.init]
    assert given == ["reqs", "phase"]
    assert {"input_ids", "positions", "out_loc", "padded_reqs", "attn_metadata"} <= set(
        filled_in_later
    )
    for name in filled_in_later:
        assert not hasattr(batch, name)


# --- Context ----------------------------------------------------------------------------------


@pytest.mark.guard
def test_a_new_context_has_a_page_size_and_nothing_else() -> None:
    ctx = Context(page_size=16)
    assert ctx.page_size == 16
    for name in ("page_table", "attn_backend", "moe_backend", "kv_cache"):
        assert not hasattr(ctx, name)


def test_there_is_no_batch_outside_forward_batch() -> None:
    ctx = Context(page_size=1)
    with pytest.raises(AssertionError):
        _ = ctx.batch
    batch = Batch(reqs=[], phase="prefill")
    with ctx.forward_batch(batch):
        assert ctx.batch is batch
    with pytest.raises(AssertionError):
        _ = ctx.batch


def test_forward_batch_cannot_be_nested() -> None:
    ctx = Context(page_size=1)
    outer, inner = Batch(reqs=[], phase="prefill"), Batch(reqs=[], phase="decode")
    with ctx.forward_batch(outer):
        with pytest.raises(AssertionError), ctx.forward_batch(inner):
            pass
        assert ctx.batch is outer  # the refused one has not taken its place


def test_the_batch_is_cleared_after_an_exception() -> None:
    ctx = Context(page_size=1)
    batch = Batch(reqs=[], phase="prefill")
    with pytest.raises(KeyError, match="in the model"), ctx.forward_batch(batch):
        raise KeyError("in the model")
    with pytest.raises(AssertionError):
        _ = ctx.batch
    with ctx.forward_batch(batch):
        assert ctx.batch is batch


def test_self_test_a_layer_reads_its_positions_from_the_global_context() -> None:
    def layer() -> list[int]:  # no argument: everything comes from the current batch
        batch = get_global_ctx().batch
        return (batch.input_ids + batch.positions).tolist()

    ctx = Context(page_size=1)
    batch = Batch(reqs=[], phase="prefill")
    batch.input_ids = torch.tensor([10, 20, 30])
    batch.positions = torch.tensor([0, 1, 2])
    with global_ctx(ctx), ctx.forward_batch(batch):
        assert layer() == [10, 21, 32]
    with global_ctx(ctx), pytest.raises(AssertionError):
        layer()


def test_the_global_context_must_be_set_before_it_is_read() -> None:
    reset_global_ctx()
    with pytest.raises(AssertionError):
        get_global_ctx()


def test_the_global_context_is_not_set_twice() -> None:
    ctx = Context(page_size=1)
    with global_ctx(ctx):
        with pytest.raises(AssertionError):
            set_global_ctx(Context(page_size=2))
        assert get_global_ctx() is ctx


def test_a_reset_context_can_be_set_again() -> None:
    with global_ctx(Context(page_size=1)):
        reset_global_ctx()
        second = Context(page_size=2)
        set_global_ctx(second)
        assert get_global_ctx() is second
