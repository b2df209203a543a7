"""Chapter 11: a weight lies in memory as it is multiplied fastest here, and nothing else changes.

In the order in which the files build on each other: the layouts, the choice of one and what is
measured for it, the layers, the model, the engine.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import minisgl.engine.engine
import minisgl.layers.layout
import minisgl.models.layouts
from minisgl.core import Batch, SamplingParams
from minisgl.engine.config import EngineConfig
from minisgl.engine.engine import Engine
from minisgl.layers.base import Layer
from minisgl.layers.embedding import Embedding, LMHead
from minisgl.layers.layout import LAYOUTS, ROW_COUNTS, Choice, Product, choose, measure
from minisgl.layers.linear import Linear, MergedLinear
from minisgl.llm import LLM
from minisgl.models.layouts import lay_out
from tiny_models import ARCHITECTURES
from whole_prompt import current, make_req

TinyModel = Callable[[str], Path]

layout: Any = minisgl.layers.layout  # names of its own are replaced here
layouts: Any = minisgl.models.layouts

CPU = torch.device("cpu")
ALWAYS, NEVER = (True,) * 5, (False,) * 5
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2.0**-7}  # of the largest entry
names = pytest.mark.parametrize("name", ["plain", "transposed", "oneDNN", "MKL"])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors are computed faster by one thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where choices are remembered."""
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path))
    return tmp_path / "layouts"


def randn(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def is_here(name: str, dtype: torch.dtype) -> bool:
    if name == "MKL":
        return torch.backends.mkl.is_available() and dtype == torch.float32
    return name != "oneDNN" or dtype in usable_by_onednn()


def usable_by_onednn() -> list[torch.dtype]:
    if not torch.backends.mkldnn.is_available():
        return []
    has_bf16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return [torch.float32, torch.bfloat16] if has_bf16 else [torch.float32]


def assert_close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if len(expected):
        error = (actual.float() - expected.float()).abs().max()
        assert error <= TOLERANCE[expected.dtype] * expected.float().abs().max()


def give_all(choice: Choice, patch: pytest.MonkeyPatch) -> None:
    """Every weight gets this choice, and nothing is remembered."""
    patch.setattr(layouts, "choose", lambda weights: choice)
    patch.setattr(layouts, "_QUIET", math.inf)


def doubled(weight: torch.Tensor) -> Product:
    """A layout that can be told from the others."""
    return lambda x, bias: 2 * F.linear(x, weight, bias)


# --- Layouts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@names
def test_every_layout_computes_the_same_product(name: str, dtype: torch.dtype) -> None:
    if not is_here(name, dtype):
        with pytest.raises((RuntimeError, AttributeError)) as refused:
            LAYOUTS[name](randn(0, 8, 8, dtype=dtype))
        assert not isinstance(refused.value, NotImplementedError)
        return
    for num_outputs, num_inputs in [(48, 32), (7, 5), (1, 3), (300, 257)]:
        weight, bias = randn(1, num_outputs, num_inputs, dtype=dtype), randn(2, num_outputs)
        multiply = LAYOUTS[name](weight)
        for num_rows in (0, 1, 2, 3, 15, 16, 17, 64, 65, 300):
            x = randn(3, num_rows, num_inputs, dtype=dtype)
            for b in (None, bias.to(dtype)):
                assert_close(multiply(x, b), F.linear(x, weight, b))


@names
def test_the_input_need_not_be_contiguous(name: str) -> None:
    if not is_here(name, torch.float32):
        name = "plain"
    weight, wide = randn(0, 24, 16), randn(1, 9, 40)
    multiply = LAYOUTS[name](weight)
    for x in (wide[:, 8:24], wide[:, ::2][:, :16], wide[::3, :16], randn(2, 16, 5).t()):
        assert not x.is_contiguous()
        assert_close(multiply(x, None), F.linear(x, weight))


@pytest.mark.parametrize("name", ["transposed", "oneDNN"])
def test_a_layout_of_its_own_does_without_the_plain_weight(name: str) -> None:
    if not is_here(name, torch.float32):
        name = "transposed"
    weight, x = randn(0, 24, 16), randn(1, 9, 16)
    expected = F.linear(x, weight)
    multiply = LAYOUTS[name](weight)
    weight.zero_()
    assert_close(multiply(x, None), expected)


def test_mkl_is_told_how_many_rows_it_gets_or_it_computes_the_plain_way() -> None:
    """The trap needs a plain weight that is another: then one sees which of the two is read."""
    if not is_here("MKL", torch.float32):
        assert "MKL" not in measure([randn(0, 24, 16)])
        return
    weight, x = randn(0, 24, 16), randn(1, 8, 16)
    packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, 16)
    for told in (1, 7, 8, 9, 16):
        result = torch.ops.mkl._mkl_linear(x, packed, torch.zeros_like(weight), None, told)
        assert bool(result.any()) == (told == len(x))

    multiply, expected = LAYOUTS["MKL"](weight), F.linear(randn(2, 300, 16), weight)
    weight.zero_()
    for num_rows in (1, 2, 8, 15, 16, 17, 64, 300):
        assert_close(multiply(randn(2, 300, 16)[:num_rows], None), expected[:num_rows])


# --- A choice ---------------------------------------------------------------------------------


@pytest.mark.parametrize("num_rows", [0, 1, 2, 3, 4, 5, 16, 17, 64, 65, 256, 257, 10_000])
def test_a_number_of_rows_is_computed_like_the_next_larger_that_was_measured(
    num_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LAYOUTS, "doubled", doubled)
    weight, x, bias = randn(0, 3, 2), randn(1, num_rows, 2), randn(2, 3)
    place = next((i for i, count in enumerate(ROW_COUNTS) if num_rows <= count), -1)
    for flags in product([True, False], repeat=len(ROW_COUNTS)):
        expected = F.linear(x, weight, bias) * (2 if flags[place] else 1)
        assert torch.equal(Choice("doubled", flags).apply(weight)(x, bias), expected)


def test_a_layout_that_is_never_used_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[torch.Tensor] = []

    def noted(weight: torch.Tensor) -> Product:
        made.append(weight)
        return doubled(weight)

    monkeypatch.setitem(LAYOUTS, "doubled", noted)
    weight = randn(0, 3, 2)
    Choice("doubled", NEVER).apply(weight)
    assert not made
    Choice("doubled", (False, True, False, False, False)).apply(weight)
    assert len(made) == 1


@pytest.mark.parametrize(
    ("flags", "text", "needs_plain"),
    [
        (ALWAYS, "oneDNN", False),
        (NEVER, "plain", True),
        ((False, True, True, False, False), "oneDNN at 4, 16 rows, else plain", True),
        ((True, False, False, False, False), "oneDNN at 1 rows, else plain", True),
        ((True, True, True, True, False), "oneDNN at 1, 4, 16, 64 rows, else plain", True),
    ],
)
def test_a_choice_says_what_it_is(flags: tuple[bool, ...], text: str, needs_plain: bool) -> None:
    choice = Choice("oneDNN", flags)
    assert (str(choice), choice.needs_plain) == (text, needs_plain)


@pytest.mark.parametrize(
    ("second", "flags"),
    [
        ("unheard of", ALWAYS),
        ("", ALWAYS),
        (None, ALWAYS),
        ("MKL", ALWAYS[1:]),
        ("MKL", (*ALWAYS, True)),
        ("MKL", ()),
        ("MKL", (1, 1, 1, 1, 1)),
        ("MKL", (True, True, True, True, None)),
        ("MKL", ("a", "b", "c", "d", "e")),
    ],
)
def test_a_choice_that_nobody_can_have_made_is_refused(second: Any, flags: Any) -> None:
    with pytest.raises(ValueError, match=r"a choice must name a layout and 5 bools, got Choice\("):
        Choice(second, flags)


# --- What is chosen ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "second", "flags"),
    [
        # The faster wins, at each number of rows by itself.
        ({"transposed": [9, 5, 5, 9, 9]}, "transposed", (False, True, True, False, False)),
        ({"transposed": [1, 1, 1, 1, 1], "MKL": [2, 2, 2, 2, 2]}, "transposed", ALWAYS),
        ({"transposed": [2, 2, 2, 2, 2], "MKL": [1, 1, 1, 1, 1]}, "MKL", ALWAYS),
        # Nothing is faster: plain. So it is where all are alike.
        ({"transposed": [9, 9, 9, 9, 9], "oneDNN": [8.1, 9, 9, 9, 9]}, "plain", NEVER),
        ({}, "plain", NEVER),
        # One weight is better than two, if that costs a twentieth at most.
        ({"oneDNN": [4, 4, 8.4, 8.4, 8.3]}, "oneDNN", ALWAYS),
        ({"oneDNN": [4, 4, 8.4, 8.5, 7]}, "oneDNN", (True, True, False, False, True)),
        # One that is good everywhere against one that is very good once: the sum of gains decides.
        ({"transposed": [2, 8, 8, 8, 8], "MKL": [7, 7, 7, 7, 7]}, "transposed", ALWAYS),
        ({"transposed": [4, 8, 8, 8, 8], "MKL": [7, 7, 7, 7, 7]}, "MKL", ALWAYS),
        # What a layout loses where it is not used does not count against it.
        ({"MKL": [1, 99, 99, 99, 99], "oneDNN": [7, 7, 7, 7, 7]}, "MKL", (1, 0, 0, 0, 0)),
    ],
)
def test_the_choice_follows_the_times(
    times: dict[str, list[float]],
    second: str,
    flags: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = [8.0] * len(ROW_COUNTS)
    monkeypatch.setattr(layout, "measure", lambda weights: {"plain": plain, **times})
    assert choose([randn(0, 3, 2)]) == Choice(second, tuple(map(bool, flags)))


def test_every_number_of_rows_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """In seconds 256 rows take a hundred times as long as one, and would decide alone."""
    plain, few, many = [1, 2, 8, 30, 100], [0.5, 1, 8, 30, 100], [1, 2, 8, 30, 90]
    times = {"plain": plain, "transposed": few, "MKL": many}
    monkeypatch.setattr(layout, "measure", lambda weights: times)
    assert choose([randn(0, 3, 2)]) == Choice("transposed", ALWAYS)


# --- What is measured -------------------------------------------------------------------------


def test_the_least_of_the_rounds_counts_at_each_number_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def seconds(products: Sequence[Product], x: torch.Tensor) -> float:
        asked.append(len(x))
        return len(x) + 10 / len(asked)  # less in each round

    monkeypatch.setattr(layout, "_time", seconds)
    monkeypatch.setattr(layout, "LAYOUTS", {"plain": layout.plain, "other": layout.transposed})
    times = measure([randn(0, 6, 4)])
    assert asked == [n for n in ROW_COUNTS for _ in range(2)] * 5
    assert list(times) == ["plain", "other"]
    last = len(asked) - 2 * len(ROW_COUNTS)
    for place, n in enumerate(ROW_COUNTS):
        assert times["plain"][place] == n + 10 / (last + 2 * place + 1)
        assert times["other"][place] == n + 10 / (last + 2 * place + 2)


@pytest.mark.parametrize(("each", "rounds"), [(0.0, 5), (0.01, 5), (0.11, 1), (10.0, 1)])
def test_measuring_ends_in_time_but_not_before_its_first_round(
    each: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, calls = [0.0], count()

    def seconds(products: Sequence[Product], x: torch.Tensor) -> float:
        next(calls)
        clock[0] += each
        return each

    monkeypatch.setattr(layout, "_time", seconds)
    monkeypatch.setattr(layout, "LAYOUTS", {"plain": layout.plain})
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    times = measure([randn(0, 6, 4)])
    assert times == {"plain": [each] * len(ROW_COUNTS)}
    assert next(calls) == rounds * len(ROW_COUNTS)


def wrong_at(num_rows: int, factor: float) -> Callable[[torch.Tensor], Product]:
    def make(weight: torch.Tensor) -> Product:
        return lambda x, bias: F.linear(x, weight, bias) * (factor if len(x) == num_rows else 1)

    return make


def fails(error: type[Exception]) -> Callable[[torch.Tensor], Product]:
    def make(weight: torch.Tensor) -> Product:
        def multiply(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            raise error("not for this dtype")

        return multiply

    return make


def is_missing(weight: torch.Tensor) -> Product:
    return torch.ops.mkl.no_such_operator(weight)


@pytest.mark.parametrize(
    "make",
    [
        doubled,
        wrong_at(1, 1.002),
        wrong_at(4, float("nan")),
        wrong_at(64, 0.0),
        wrong_at(256, float("inf")),
        lambda weight: lambda x, bias: F.linear(x, weight.flip(0), bias),
        lambda weight: lambda x, bias: F.linear(x, weight, bias)[:, :-1],
        fails(RuntimeError),
        fails(NotImplementedError),
        is_missing,
    ],
    ids=["doubled", "1", "NaN", "0", "inf", "rows", "shape", "error", "kernel", "missing"],
)
def test_a_layout_that_computes_something_else_or_nothing_is_left_out(
    make: Callable[[torch.Tensor], Product], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = {"plain": layout.plain, "other": make, "transposed": layout.transposed}
    monkeypatch.setattr(layout, "LAYOUTS", right)
    assert list(measure([randn(0, 24, 16)])) == ["plain", "transposed"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_what_this_machine_has_is_measured_for_each_dtype(dtype: torch.dtype) -> None:
    times = measure([randn(n, 24, 16, dtype=dtype) for n in range(2)])
    assert {"plain", "transposed"} <= set(times) <= set(LAYOUTS)
    if dtype != torch.float16:
        assert set(times) == {name for name in LAYOUTS if is_here(name, dtype)}
    assert all(0 < seconds < 60 for row in times.values() for seconds in row)


@pytest.mark.parametrize(("dtype", "value"), [(torch.float16, 6e4), (torch.float32, 0.0)])
def test_a_strange_weight_has_a_choice_too(dtype: torch.dtype, value: float) -> None:
    weight = torch.full((24, 16), value, dtype=dtype)  # products that overflow, or are nothing
    assert choose([weight]).second in LAYOUTS


def test_measuring_leaves_the_weights_and_torch_s_random_numbers_as_they_are() -> None:
    weights = [randn(n, 24, 16) for n in range(3)]
    before, state = [weight.clone() for weight in weights], torch.get_rng_state()
    choose(weights)
    assert all(map(torch.equal, weights, before))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("shape", "num_weights", "samples"),
    [
        ((8, 4), 2, [8, 8]),
        ((8, 4), 9, [8, 8, 8, 8]),
        ((100, 2**18), 1, [8, 8, 8, 8]),  # a row has a MiB
        ((10, 2**18), 2, [8, 2, 8, 2]),
        ((3, 2**22), 1, [1, 1, 1]),  # a row is larger than a piece
    ],
)
def test_a_few_pieces_of_a_few_mib_are_measured(
    shape: tuple[int, int],
    num_weights: int,
    samples: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[list[int]] = []

    def seconds(products: Sequence[Any], x: torch.Tensor) -> float:
        seen.append([len(weight) for weight in products])
        return 1.0

    monkeypatch.setattr(layout, "_time", seconds)
    monkeypatch.setattr(layout, "_right", lambda weight: {"plain": lambda weight: weight})
    monkeypatch.setattr(layout, "_input", lambda weight: randn(0, 256, 1))
    measure([torch.empty(shape)] * num_weights)
    assert seen == [samples] * len(seen)


@pytest.mark.parametrize(("num_rows", "num_calls"), [(1, 4), (63, 4), (64, 1), (256, 1)])
def test_a_time_is_that_of_one_product(
    num_rows: int, num_calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, called = [0.0], list[tuple[int, int]]()

    def product_of(number: int) -> Product:
        def multiply(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            called.append((number, len(x)))
            clock[0] += 3.0
            return x

        return multiply

    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    assert layout._time([product_of(n) for n in range(4)], randn(0, num_rows, 2)) == 3.0
    assert called == [(n, num_rows) for n in range(num_calls)]


# --- Layers -----------------------------------------------------------------------------------


def filled(layer: Layer, dtype: torch.dtype = torch.float32) -> Layer:
    layer.materialize(dtype, CPU)
    for seed, (_, owner, part) in enumerate(layer.slots()):
        owner.load(part, randn(seed, *owner.parts()[part]))
    return layer


@pytest.mark.parametrize("bias", [True, False])
@names
def test_a_linear_layer_computes_the_same_in_every_layout(name: str, bias: bool) -> None:
    if not is_here(name, torch.float32):
        name = "transposed"
    layer = Linear(16, 24, bias)
    filled(layer)
    x = randn(9, 5, 16)
    expected = layer.forward(x)
    layer.use_layout(Choice(name, ALWAYS))
    assert_close(layer.forward(x), expected)
    assert layer.weight.is_meta and layer.weight.shape == (24, 16)


@pytest.mark.parametrize("name", ["transposed", "plain"])
def test_the_plain_weight_stays_where_a_number_of_rows_needs_it(name: str) -> None:
    layer = Linear(16, 24, bias=False)
    filled(layer)
    x = randn(9, 5, 16)
    weight, expected = layer.weight, layer.forward(x)
    layer.use_layout(Choice(name, (True, True, False, True, True)))
    assert layer.weight is weight
    assert torch.equal(layer.forward(x), expected)  # five rows: as for 16


@pytest.mark.parametrize("flags", [ALWAYS, NEVER, (True, False, True, False, True)])
def test_members_of_a_merged_layer_are_split_as_before(flags: tuple[bool, ...]) -> None:
    layer = MergedLinear(16, {"q": 12, "k": 4, "v": 4}, bias=True)
    filled(layer)
    xs = [randn(n, n, 16) for n in (1, 3, 17)]
    expected = [layer.forward_split(x) for x in xs]
    layer.use_layout(Choice("transposed", flags))
    for x, before in zip(xs, expected, strict=True):
        for actual, right in zip(layer.forward_split(x), before, strict=True):
            assert_close(actual, right)


@pytest.mark.parametrize("flags", [ALWAYS, (False, True, True, True, True)])
@pytest.mark.parametrize("tied", [True, False])
def test_a_head_keeps_the_weight_that_others_need(tied: bool, flags: tuple[bool, ...]) -> None:
    embedding = Embedding(50, 16)
    head = LMHead(50, 16, embedding if tied else None)
    filled(embedding)
    filled(head)
    ids, x = torch.tensor([3, 49, 0]), randn(7, 3, 16)
    with current(Batch([make_req(9, cached_len=8) for _ in range(3)], "decode")):
        vectors, logits = embedding.forward(ids), head.forward(x)
        head.use_layout(Choice("transposed", flags))
        assert_close(head.forward(x), logits)
    assert torch.equal(embedding.forward(ids), vectors)
    if tied:
        assert head.matrix is embedding.weight
    else:
        assert head.weight.is_meta == all(flags)


def test_a_head_in_a_layout_still_scores_only_the_sampled_rows() -> None:
    head = LMHead(50, 16)
    filled(head)
    batch, x = Batch([make_req(4), make_req(3)], "prefill"), randn(7, 7, 16)
    batch.logits_rows = torch.tensor([3, 6])
    with current(batch):
        expected = head.forward(x)
        head.use_layout(Choice("transposed", ALWAYS))
        assert_close(head.forward(x), expected)


# --- The layers of a model --------------------------------------------------------------------


class Block(Layer):
    def __init__(self, size: int) -> None:
        self.up = Linear(size, 2 * size, bias=True)
        self.down = Linear(2 * size, size, bias=False)


class Model(Layer):
    """Two blocks of 2 MiB weights, one of 8 KiB, and a head on the embedding."""

    def __init__(self) -> None:
        self.embed = Embedding(1024, 512)
        self.first, self.second, self.small = Block(512), Block(512), Block(32)
        self.head = LMHead(1024, 512, self.embed)


def model_of(dtype: torch.dtype = torch.float32) -> Model:
    model = Model()
    model.materialize(dtype, CPU)
    for _, owner, part in model.slots():
        getattr(owner, part).fill_(0.5)
    return model


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, ...]]]:
    """The shapes of the weights of each measurement; all are given the transposed layout."""
    calls: list[list[tuple[int, ...]]] = []

    def quick(weights: Sequence[torch.Tensor]) -> Choice:
        calls.append([tuple(weight.shape) for weight in weights])
        return Choice("transposed", ALWAYS)

    monkeypatch.setattr(layouts, "choose", quick)
    monkeypatch.setattr(layouts, "_QUIET", 0.0)
    return calls


Asked = list[list[tuple[int, ...]]]


def test_weights_of_one_shape_are_chosen_for_once(asked: Asked) -> None:
    model = model_of()
    chosen = lay_out(model)
    assert asked == [[(1024, 512)] * 3, [(512, 1024)] * 2]
    assert list(chosen) == ["512 → 1024, float32", "1024 → 512, float32"]
    assert set(chosen.values()) == {Choice("transposed", ALWAYS)}
    for block in (model.first, model.second):
        assert block.up.weight.is_meta and block.down.weight.is_meta
    assert not model.small.up.weight.is_meta  # it has its place in the cache anyway
    assert not model.embed.weight.is_meta


def test_a_weight_of_another_dtype_has_a_choice_of_its_own(asked: Asked) -> None:
    chosen = lay_out(model_of(torch.bfloat16))
    assert [*chosen] == ["512 → 1024, bfloat16", "1024 → 512, bfloat16"]
    lay_out(model_of())
    assert len(asked) == 4


@pytest.mark.parametrize(("rows", "count"), [(1023, 0), (1024, 1)])
def test_a_mib_is_what_makes_a_weight_large(rows: int, count: int, asked: Asked) -> None:
    layer = Linear(256, rows, bias=False)
    layer.materialize(torch.float32, CPU)
    assert len(lay_out(layer)) == len(asked) == count


def test_a_weight_that_is_not_on_the_cpu_stays_as_it_is(asked: Asked) -> None:
    model = Model()  # on the meta device
    assert lay_out(model) == {} and not asked
    assert model.first.up.forward(torch.empty(3, 512, device="meta")).is_meta


def test_what_was_measured_is_remembered(asked: Asked, home: Path) -> None:
    chosen = lay_out(model_of())
    again = model_of()
    assert lay_out(again) == chosen
    assert len(asked) == 2 and again.first.up.weight.is_meta
    [file] = home.iterdir()
    content = json.loads(file.read_text("utf-8"))
    assert content["machine"] == layouts._machine()
    assert content["choices"]["512 → 1024, float32"] == {
        "second": "transposed",
        "uses_second": [True] * 5,
    }


def test_only_what_is_not_known_yet_is_measured(asked: Asked, home: Path) -> None:
    lay_out(model_of().first)
    big = Linear(2048, 1024, bias=False)
    big.materialize(torch.float32, CPU)
    assert list(lay_out(big)) == ["2048 → 1024, float32"]  # what it has, not all that is known
    assert len(asked) == 3
    [file] = home.iterdir()
    assert len(json.loads(file.read_text("utf-8"))["choices"]) == 3


def test_another_machine_measures_for_itself(
    asked: Asked, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(model_of())
    torch.set_num_threads(2)  # two threads are another machine
    lay_out(model_of())
    torch.set_num_threads(1)
    monkeypatch.setattr(layouts, "_processor", lambda: "another processor")
    lay_out(model_of())
    monkeypatch.undo()
    assert len(asked) == 6 and len([*home.iterdir()]) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "7",
        '"choices"',
        "{}",
        '{"choices": null}',
        '{"choices": []}',
        '{"choices": [1]}',
        '{"choices": {"512 → 1024, float32": null}}',
        '{"choices": {"512 → 1024, float32": {}}}',
        '{"choices": {"512 → 1024, float32": {"second": "MKL"}}}',
        '{"choices": {"512 → 1024, float32": {"second": "MKL", "uses_second": true}}}',
        '{"choices": {"512 → 1024, float32": {"second": "MKL", "uses_second": "abcde"}}}',
        '{"choices": {"a": {"second": "what", "uses_second": [true, true, true, true, true]}}}',
        '{"choices": {"a": {"second": ["MKL"], "uses_second": [true, true, true, true, true]}}}',
        '{"choices": {"a": {"second": {}, "uses_second": [1, 2, 3, 4, 5]}}}',
        "[" * 10**6,
        "9" * 10**5,
        "\0",
        "\ud800",
    ],
    ids=range(22),
)
def test_a_file_that_is_not_ours_is_measured_again_and_written_anew(
    text: str, asked: Asked, home: Path
) -> None:
    lay_out(model_of())
    [file] = home.iterdir()
    right = file.read_text("utf-8")
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    lay_out(model_of())
    assert len(asked) == 4 and file.read_text("utf-8") == right


def test_where_nothing_can_be_written_it_is_measured_each_time(
    asked: Asked, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write_text("a file where the folder should be")
    lay_out(model_of())
    lay_out(model_of())
    assert len(asked) == 4

    def homeless(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("MINISGL_HOME")
    monkeypatch.setattr(Path, "expanduser", homeless)
    lay_out(model_of())
    assert len(asked) == 6


def test_nothing_is_left_of_a_file_that_could_not_be_written(
    asked: Asked, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> Path:
        raise OSError("No space left on device")

    for step in ("write_text", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, step, full)
            lay_out(model_of())
        assert [*home.iterdir()] == []


@pytest.mark.parametrize(("share", "files"), [(0.69, 0), (0.71, 1), (1.0, 1)])
def test_what_was_measured_on_a_busy_machine_is_not_remembered(
    share: float, files: int, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(2)
    clock = [0.0]

    def slow(weights: Sequence[torch.Tensor]) -> Choice:
        clock[0] += 1.0
        return Choice("transposed", ALWAYS)

    monkeypatch.setattr(layouts, "choose", slow)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(time, "process_time", lambda: 2 * share * clock[0])
    assert len(lay_out(model_of())) == 2  # it holds for this run all the same
    assert len([*home.glob("*")]) == files


def test_two_that_write_at_once_leave_one_whole_file(home: Path) -> None:
    known = [{f"{n} → {n}, float32": Choice("MKL", ALWAYS) for n in range(m)} for m in range(200)]
    layouts._write("a machine", known[0])

    def take_turns(number: int) -> bool:
        layouts._write("a machine", known[number])
        return layouts._read("a machine") in known[1:]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(take_turns, range(1, 200)))
    assert len([*home.iterdir()]) == 1


def test_a_bar_shows_what_is_measured_and_only_then(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(model_of())
    assert capsys.readouterr().err == ""
    lay_out(model_of(torch.bfloat16), progress=True)
    assert "measure layouts" in capsys.readouterr().err
    lay_out(model_of(torch.bfloat16), progress=True)
    assert capsys.readouterr().err == ""


# --- The engine -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["Plain", "fast", "", None, True, 1, ["plain"]])
def test_a_bad_layout_is_refused_with_its_value(value: Any) -> None:
    with pytest.raises(ValueError) as refused:
        EngineConfig("model", weight_layout=value)
    assert str(refused.value) == f"weight_layout must be 'measured' or 'plain', got {value!r}"


def test_plain_is_what_the_checkpoint_has(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*args: Any) -> Any:
        raise AssertionError("this engine is to leave its weights alone")

    monkeypatch.setattr(minisgl.engine.engine, "lay_out", never)
    assert Engine(EngineConfig(tiny_model("llama"), weight_layout="plain")).layouts == {}


def test_a_tiny_model_is_left_alone(tiny_model: TinyModel, asked: Asked, home: Path) -> None:
    assert Engine(EngineConfig(tiny_model("llama"))).layouts == {}
    assert not asked and not home.exists()


QUESTIONS = ["The capital of France is", "1, 2, 3, 4,", "Once upon a time there was"]
PROMPTS = ["The engine reads a prompt,", "请求等待,", "a", "A request waits, is scheduled, runs,"]


@pytest.mark.parametrize("flags", [ALWAYS, (False, True, False, False, False)])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_no_layout_changes_a_token(
    arch: str, flags: tuple[bool, ...], tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = SamplingParams(max_tokens=12, ignore_eos=True)
    with LLM(tiny_model(arch), max_seq_len=64, weight_layout="plain") as llm:
        expected = [output.token_ids for output in llm.generate(PROMPTS, params)]
    monkeypatch.setattr(layouts, "_MIN_BYTES", 1)
    for name in LAYOUTS:
        if is_here(name, torch.float32):
            choice = Choice(name, flags)
            give_all(choice, monkeypatch)
            with LLM(tiny_model(arch), max_seq_len=64) as llm:
                assert {str(one) for one in llm.engine.layouts.values()} == {str(choice)}
                answers = [output.token_ids for output in llm.generate(PROMPTS, params)]
            assert answers == expected


@pytest.mark.slow
def test_the_real_model_computes_the_same_in_every_layout(
    real_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 1, 8 and 40 rows: each layout for all weights, and then what is chosen here."""

    def forced(logits: torch.Tensor, args: Any) -> torch.Tensor:
        return torch.arange(1000, 1000 + len(logits), dtype=torch.int32)

    def logits_and_tokens(llm: LLM) -> tuple[list[torch.Tensor], list[list[int]]]:
        seen: list[torch.Tensor] = []
        forward = llm.engine.model.forward

        def watched() -> torch.Tensor:
            seen.append(forward())
            return seen[-1]

        with monkeypatch.context() as patch:
            patch.setattr(minisgl.engine.engine, "sample", forced)
            patch.setattr(llm.engine.model, "forward", watched)
            for size in (1, 8, 40):
                prompts = [[100 * n + m for m in range(5)] for n in range(1, size + 1)]
                llm.generate(prompts, SamplingParams(max_tokens=2, ignore_eos=True))
        outputs = llm.generate(QUESTIONS, SamplingParams(max_tokens=10))
        return seen, [output.token_ids for output in outputs]

    def assert_the_same(llm: LLM) -> None:
        actual, answers = logits_and_tokens(llm)
        assert answers == tokens
        for one, right in zip(actual, logits, strict=True):
            assert (one - right).abs().max() < 2e-4  # of about 20

    options: dict[str, Any] = {"max_seq_len": 64, "max_running_reqs": 40}
    with LLM(real_model, weight_layout="plain", **options) as llm:
        logits, tokens = logits_and_tokens(llm)
        for name in LAYOUTS:
            if is_here(name, torch.float32):
                for layer in layouts._descendants(llm.engine.model):
                    if isinstance(layer, Linear | LMHead):  # one row is left to the plain weight
                        layer.use_layout(Choice(name, (False, True, True, True, True)))
                assert_the_same(llm)
    with LLM(real_model, **options) as llm:
        assert len(llm.engine.layouts) == 5
        assert_the_same(llm)
