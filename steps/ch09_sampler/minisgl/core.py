"""The objects that every part of the engine shares: a request, a batch, and what is current.

Only four kinds of things travel through the engine. `SamplingParams` says how one request wants
its tokens chosen, `Req` how far that request has come, `Batch` which requests are computed
together this round, and `Context` what exists once per engine: its caches, its backends, and the
batch that is being computed right now.

    Context ── page table, KV pool, attention backend, MoE backend
       └── the current Batch
              └── Req, Req, …
                     └── SamplingParams, cache handle
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch

from minisgl.utils.check import check_number

if TYPE_CHECKING:
    from minisgl.attention import BaseAttnBackend, BaseAttnMetadata
    from minisgl.engine.sample import SamplingArgs
    from minisgl.kvcache import BaseCacheHandle, BaseKVCachePool
    from minisgl.moe import BaseMoeBackend


@dataclass
class SamplingParams:
    """How the tokens of one request are chosen, and how many there may be.

    `temperature` 0 means greedy. `top_k` -1 (or 0), `top_p` 1.0 and `min_p` 0.0 switch their
    filters off. With `ignore_eos` only `max_tokens`, the number of generated tokens, ends the
    request. The same `seed` gives the same tokens whatever else is computed beside them; a
    request without one gets its own from the engine. `repetition_penalty` divides the scores of
    all tokens seen, prompt included; `presence_penalty` is subtracted once, and
    `frequency_penalty` per occurrence, for generated ones. `logprobs` asks for the log
    probability of each token, and of that many best ones beside it, under the model's own
    distribution.
    """

    temperature: float = 0.0
    top_k: int = -1
    top_p: float = 1.0
    ignore_eos: bool = False
    max_tokens: int = 1024
    seed: int | None = None
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logprobs: int | None = None

    def validate(self) -> None:
        """Raise ValueError for the first value that no sampler could follow."""
        check_number("temperature", self.temperature, low=0)
        check_number("top_k", self.top_k, low=-1, whole=True)
        check_number("top_p", self.top_p, low=0, high=1, open_low=True)
        check_number("max_tokens", self.max_tokens, low=1, whole=True)
        if self.seed is not None:
            check_number("seed", self.seed, low=-(2**63), high=2**63 - 1, whole=True)
        check_number("min_p", self.min_p, low=0, high=1)
        check_number("repetition_penalty", self.repetition_penalty, low=0, open_low=True)
        check_number("presence_penalty", self.presence_penalty, low=-2, high=2)
        check_number("frequency_penalty", self.frequency_penalty, low=-2, high=2)
        if self.logprobs is not None:
            check_number("logprobs", self.logprobs, low=0, high=20, whole=True)

    @property
    def has_penalties(self) -> bool:
        """Whether the scores depend on which tokens came before."""
        return (self.repetition_penalty, self.presence_penalty, self.frequency_penalty) != (1, 0, 0)

    @property
    def is_greedy(self) -> bool:
        """Whether a plain argmax chooses the token, so that the sampler may skip the softmax.

        `top_k == 1` is greedy at any temperature. `top_p < 1` never is: such a row goes through
        the top-p filter, which at temperature 0 finds the same token by the longer way.
        """
        always_the_best = self.temperature <= 0.0 or self.top_k == 1
        return always_the_best and self.top_p == 1.0


@dataclass(eq=False)
class Req:
    """One request, from its admission to its last token.

    Three lengths say all about its progress, and `0 <= cached_len < device_len <= max_device_len`
    holds when it is admitted:

        input_ids    ├──── cached_len ────┼──── extend_len ────┼──── remain_len ────┤
                     0                    cached_len           device_len           max_device_len
                     KV is in the cache   computed this round   still to be generated

    A whole prefill, a chunk of one, a prefix hit and a decode step differ only in these numbers.

    `eq=False` keeps comparison and hash by identity: two users may send the same prompt with the
    same parameters, and these are two requests. It also makes a request fit for sets and dicts,
    which comparison by value would not: a dataclass with `eq=True` cannot be hashed.
    """

    input_ids: torch.Tensor  # int32 [known tokens], on the CPU: the prompt, then what came after it
    table_idx: int  # the row of the page table and of the token pool that this request occupies
    cached_len: int  # the KV of the first cached_len tokens is in the cache already
    output_len: int  # how many tokens may be generated at most (max_tokens)
    uid: int
    sampling_params: SamplingParams
    cache_handle: BaseCacheHandle  # the part of the prefix cache that is locked for this request

    def __post_init__(self) -> None:
        assert self.input_ids.is_cpu, "the input ids of a request are kept on the CPU"
        prompt_len = len(self.input_ids)
        self.device_len = prompt_len  # how many tokens have KV in the cache after this round
        self.max_device_len = prompt_len + self.output_len
        # At least one token is computed per round: the logits need its hidden state. A prompt
        # that the cache knows in full is therefore matched without its last token.
        assert 0 <= self.cached_len < self.device_len <= self.max_device_len, f"no valid {self!r}"

        # input_ids is a view that grows inside this buffer, so that appending copies no history.
        self._host_ids = torch.empty(self.max_device_len, dtype=self.input_ids.dtype)
        self._host_ids[:prompt_len] = self.input_ids
        self.input_ids = self._host_ids[:prompt_len]

    @property
    def prompt_len(self) -> int:
        """How many tokens the prompt has."""
        return self.max_device_len - self.output_len

    @property
    def remain_len(self) -> int:
        """How many tokens may still be generated."""
        return self.max_device_len - self.device_len

    @property
    def extend_len(self) -> int:
        """How many tokens enter the model this round: the uncached prompt, or 1 in a decode."""
        return self.device_len - self.cached_len

    @property
    def can_decode(self) -> bool:
        """Whether there is room for another round of decode."""
        return self.remain_len > 0

    def complete_one(self) -> None:
        """Record a forward pass: what it computed is cached, and one more position comes next.

        The lengths move when the pass is launched; the token it yields arrives by `append_host`.
        The last token of a request is only ever an output, so its KV is never computed.
        """
        self.cached_len = self.device_len
        self.device_len += 1

    def append_host(self, next_token: torch.Tensor) -> None:
        """Append sampled tokens, int32 [n] on the CPU, to `input_ids` once they are known."""
        known = len(self.input_ids)
        longer = known + len(next_token)
        assert longer <= self.max_device_len, f"a token too many for {self!r}"
        self._host_ids[known:longer] = next_token
        self.input_ids = self._host_ids[:longer]

    def __repr__(self) -> str:
        return (
            f"Req(uid={self.uid}, table_idx={self.table_idx}, cached_len={self.cached_len}, "
            f"device_len={self.device_len}, max_device_len={self.max_device_len})"
        )


@dataclass
class Batch:
    """The requests of one forward pass, and the tensors that describe it.

    The tokens of all requests lie end to end in one dimension, [num_tokens], without padding:
    prefills and decodes differ too much in length for a rectangle. `reqs` and `phase` are given;
    each other field is filled in by the part of the engine that knows it.
    """

    reqs: list[Req]  # the real requests
    phase: Literal["prefill", "decode"]
    # By the scheduler:
    input_ids: torch.Tensor = field(init=False)  # [num_tokens], on the device
    positions: torch.Tensor = field(init=False)  # [num_tokens], from cached_len on for each
    out_loc: torch.Tensor = field(init=False)  # [num_tokens], their places in the KV pool
    logits_rows: torch.Tensor = field(init=False)  # [num_sampled], the tokens sampled from
    sampling_args: SamplingArgs = field(init=False)
    # By the graph runner, which fills a decode batch up to a recorded size with dummy requests;
    # without a graph these are the real ones.
    padded_reqs: list[Req] = field(init=False)
    # By the attention backend: where each request begins, and which pages it reads.
    attn_metadata: BaseAttnMetadata = field(init=False)

    @property
    def is_prefill(self) -> bool:
        """Whether some request may bring more than one token."""
        return self.phase == "prefill"

    @property
    def is_decode(self) -> bool:
        """Whether every request brings exactly one token."""
        return self.phase == "decode"

    @property
    def size(self) -> int:
        """How many real requests there are."""
        return len(self.reqs)

    @property
    def padded_size(self) -> int:
        """How many rows the model computes, dummies included."""
        return len(self.padded_reqs)


@dataclass
class Context:
    """What exists once per engine, and the batch that it is computing.

    Layers take no argument for positions, caches or metadata: they read the current batch here,
    so `model.forward()` needs no parameters. The price is a hidden dependency, made loud: outside
    `forward_batch` there is no batch, and asking for it fails.
    """

    page_size: int
    # One entry per token whatever the page size: page_table[table_idx, position] is the place of
    # that token's KV in the pool.
    page_table: torch.Tensor = field(init=False)
    attn_backend: BaseAttnBackend = field(init=False)
    moe_backend: BaseMoeBackend = field(init=False)
    kv_cache: BaseKVCachePool = field(init=False)
    _batch: Batch | None = field(default=None, init=False)

    @property
    def batch(self) -> Batch:
        """The batch being computed; an AssertionError outside `forward_batch`."""
        assert self._batch is not None, "there is no current batch outside forward_batch"
        return self._batch

    @contextmanager
    def forward_batch(self, batch: Batch) -> Iterator[None]:
        """Make `batch` the current one for the length of a `with` block, which cannot be nested."""
        assert self._batch is None, "forward_batch cannot be nested: a batch is being computed"
        self._batch = batch
        try:
            yield
        finally:
            self._batch = None


_THREAD = threading.local()  # two engines may compute at once, each in a thread of its own


def set_global_ctx(ctx: Context) -> None:
    """Give this thread its context, once: a second one would hide that two engines share it."""
    assert not hasattr(_THREAD, "ctx"), "the global context is set already"
    _THREAD.ctx = ctx


def get_global_ctx() -> Context:
    """The context of this thread; an AssertionError when none has been set."""
    assert hasattr(_THREAD, "ctx"), "the global context is not set"
    ctx: Context = _THREAD.ctx
    return ctx


def reset_global_ctx() -> None:
    """Forget the context, so that another engine can compute in the same thread."""
    _THREAD.__dict__.clear()
