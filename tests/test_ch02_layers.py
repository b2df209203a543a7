"""Chapter 2: each operator computes what transformers' does, and finds its weights by its place."""

import reprlib
from importlib import import_module
from inspect import signature
from itertools import permutations
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, Qwen2Config, Qwen3Config
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    LlamaMLP,
    LlamaRMSNorm,
    LlamaRotaryEmbedding,
    apply_rotary_pos_emb,
)
from transformers.models.qwen2.modeling_qwen2 import Qwen2Attention
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from minisgl.core import Batch
from minisgl.layers.activation import silu_and_mul
from minisgl.layers.attention import Attention
from minisgl.layers.base import Layer, LayerList
from minisgl.layers.embedding import Embedding, LMHead
from minisgl.layers.linear import Linear, MergedLinear
from minisgl.layers.norm import RMSNorm
from minisgl.layers.rotary import Llama3Scaling, Rotary, RotaryConfig, Rotation
from minisgl.utils.check import check_number
from whole_prompt import current, make_req, prompt_batch

CPU = torch.device("cpu")
BF16_STEP = 2.0**-7  # the largest distance of neighbouring bfloat16 numbers, relative to them

seeds = pytest.mark.parametrize("seed", range(3))
token_counts = pytest.mark.parametrize("num_tokens", [1, 2, 17, 100])


def randn(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def fill(
    layer: Layer, seed: int = 0, dtype: torch.dtype = torch.float32
) -> dict[str, torch.Tensor]:
    """Load random values as a checkpoint would; return them by their checkpoint names."""
    layer.materialize(dtype, CPU)
    tensors = {}
    for index, (name, owner, part) in enumerate(layer.slots()):
        shape = owner.parts()[part]
        tensors[name] = randn(1000 * seed + index, *shape, dtype=dtype) / shape[-1] ** 0.5
        owner.load(part, tensors[name])
    return tensors


def assert_equal(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


def assert_within(actual: torch.Tensor, expected: torch.Tensor, bound: float = 1e-5) -> None:
    """The error of each number is at most `bound`, or `bound` of the number if it is above 1."""
    torch.testing.assert_close(actual, expected, rtol=bound, atol=bound)


# --- Numbers at the border ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "bounds", "rule"),
    [
        (0, {"low": 1, "whole": True}, "an integer ≥ 1"),
        (1.0, {"whole": True}, "an integer"),
        (True, {}, "a finite number"),
        ("1", {}, "a finite number"),
        (None, {"high": 5}, "a finite number ≤ 5"),
        (float("nan"), {"low": 0, "high": 2}, "a finite number ≥ 0 and ≤ 2"),
        (float("inf"), {"low": 0}, "a finite number ≥ 0"),
        (10**400, {}, "a finite number"),
        (0, {"low": 0, "open_low": True}, "a finite number > 0"),
    ],
)
def test_a_number_out_of_bounds_is_refused_with_name_rule_and_value(
    value: Any, bounds: dict[str, Any], rule: str
) -> None:
    with pytest.raises(ValueError) as error:
        check_number("heat", value, **bounds)
    shown = reprlib.repr(value)
    assert str(error.value) == f"heat must be {rule}, got {shown}"


def test_both_bounds_are_allowed_and_so_is_any_integer_where_one_is_asked_for() -> None:
    for value in (0, 0.0, 1.5, 2, 2.0):
        check_number("heat", value, low=0, high=2)
    check_number("seed", 10**400, whole=True)
    check_number("heat", 5e-324, low=0, open_low=True)


# --- The tree of layers, and the names that follow from it --------------------------------------


class Block(Layer):
    """A layer as a model has them: weights of its own, children, and what is neither."""

    def __init__(self, size: int) -> None:
        self.scale = torch.empty(size, device="meta")
        self.norm = RMSNorm(size, 1e-5)
        self.qkv = MergedLinear(size, {"q": 2 * size, "k": size, "v": size}, bias=True)
        self.out = Linear(2 * size, size, bias=False)
        self._norm_of_somebody_else = self.norm
        self._angles = torch.zeros(size)
        self.size = size


class Tower(Layer):
    def __init__(self, size: int, height: int) -> None:
        self.layers = LayerList([Block(size) for _ in range(height)])
        self.norm = RMSNorm(size, 1e-5)


BLOCK_NAMES = ["scale", "norm.weight", "q.weight", "q.bias", "k.weight", "k.bias", "v.weight"]
BLOCK_NAMES += ["v.bias", "out.weight"]


def names_of(layer: Layer) -> list[str]:
    return [name for name, _, _ in layer.slots()]


def tensors_of(layer: Layer) -> list[torch.Tensor]:
    own = list(layer.weights().values())
    return own + [tensor for _, child in layer.children() for tensor in tensors_of(child)]


def test_the_path_of_attributes_is_the_name_in_the_checkpoint() -> None:
    expected = [f"layers.{index}.{name}" for index in range(3) for name in BLOCK_NAMES]
    assert sorted(names_of(Tower(4, 3))) == sorted([*expected, "norm.weight"])


def test_slots_come_in_the_same_order_each_time() -> None:
    assert names_of(Tower(4, 3)) == names_of(Tower(4, 3))


def test_a_slot_leads_to_the_layer_that_loads_it() -> None:
    tower = Tower(4, 2)
    slots = {name: (layer, part) for name, layer, part in tower.slots()}
    first, second = tower.layers
    assert slots["layers.1.norm.weight"] == (second.norm, "weight")
    assert slots["layers.0.k.bias"] == (first.qkv, "k.bias")


def test_no_weight_but_a_prefix_in_front_of_its_name() -> None:
    assert [name for name, _, _ in RMSNorm(4, 1e-5).slots("model.norm.")] == ["model.norm.weight"]


def test_a_layer_takes_no_memory_before_it_is_materialized() -> None:
    embedding = Embedding(10**9, 10**6)  # 4 PB in fp32
    layers = [
        embedding,
        LMHead(10**9, 10**6),
        Linear(10**7, 10**7, bias=True),
        MergedLinear(10**7, {"a": 10**7, "b": 10**7}, bias=True),
        RMSNorm(10**12, 1e-5),
        make_attention(10**6, 10**6, 10**5, 128, qkv_bias=True, o_bias=True, qk_norm_eps=1e-5),
    ]
    for layer in layers:
        tensors = tensors_of(layer)
        assert tensors and all(tensor.is_meta for tensor in tensors)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_materialize_gives_every_weight_below_its_type_and_place(dtype: torch.dtype) -> None:
    tower = Tower(4, 2)
    shapes = [tensor.shape for tensor in tensors_of(tower)]
    tower.materialize(dtype, CPU)
    assert [tensor.shape for tensor in tensors_of(tower)] == shapes
    for tensor in tensors_of(tower):
        assert (tensor.dtype, tensor.device) == (dtype, CPU)


def test_load_copies_into_the_place_that_is_there_and_converts() -> None:
    norm = RMSNorm(8, 1e-5)
    norm.materialize(torch.bfloat16, CPU)
    place, tensor = norm.weight, randn(0, 8)
    norm.load("weight", tensor)
    assert norm.weight is place
    assert_equal(place, tensor.bfloat16())
    expected = place.clone()
    tensor.zero_()  # the mapped file may go away: nothing of it is kept
    assert_equal(norm.weight, expected)


@pytest.mark.parametrize("wrong", [(6, 4), (4,), (1, 6), (1,), (5, 6), ()])
def test_a_tensor_of_another_shape_is_refused(wrong: tuple[int, ...]) -> None:
    """Even one that would broadcast: copying it would fill the weight with repetitions."""
    linear = Linear(6, 4, bias=False)
    linear.materialize(torch.float32, CPU)
    with pytest.raises(ValueError) as error:
        linear.load("weight", torch.zeros(wrong))
    assert str(error.value) == (f"weight must have shape [4, 6], the checkpoint has {list(wrong)}")


def test_a_member_of_another_shape_is_refused_under_its_own_name() -> None:
    merged = MergedLinear(6, {"q_proj": 4, "k_proj": 2}, bias=True)
    merged.materialize(torch.float32, CPU)
    with pytest.raises(ValueError, match=r"k_proj\.bias must have shape \[2\], .* has \[4\]"):
        merged.load("k_proj.bias", torch.zeros(4))


# --- Linear -------------------------------------------------------------------------------------


@seeds
@token_counts
@pytest.mark.parametrize("bias", [False, True])
def test_linear_equals_torch_s(seed: int, num_tokens: int, bias: bool) -> None:
    linear, reference = Linear(33, 7, bias), torch.nn.Linear(33, 7, bias)
    reference.load_state_dict(fill(linear, seed))
    x = randn(seed + 50, num_tokens, 33)
    assert_equal(linear.forward(x), reference(x))


@seeds
@pytest.mark.parametrize("bias", [False, True])
def test_a_merged_linear_computes_what_its_members_would(seed: int, bias: bool) -> None:
    members = {"q_proj": 6, "k_proj": 3, "v_proj": 5}
    merged = MergedLinear(9, members, bias)
    tensors = fill(merged, seed)
    x = randn(seed + 50, 17, 9)
    for (name, rows), part in zip(members.items(), merged.forward_split(x), strict=True):
        expected = torch.nn.functional.linear(
            x, tensors[f"{name}.weight"], tensors.get(f"{name}.bias")
        )
        assert part.shape == (17, rows)
        assert_within(part, expected)


def test_the_members_of_a_merged_linear_load_in_any_order() -> None:
    tensors = {part: randn(i, *shape) for i, (part, shape) in enumerate(parts_of_three().items())}
    for order in permutations(tensors):
        merged = MergedLinear(4, {"q": 2, "k": 1, "v": 3}, bias=True)
        merged.materialize(torch.float32, CPU)
        for part in order:
            merged.load(part, tensors[part])
        assert merged.bias is not None
        assert_equal(merged.weight, torch.cat([tensors[f"{name}.weight"] for name in "qkv"]))
        assert_equal(merged.bias, torch.cat([tensors[f"{name}.bias"] for name in "qkv"]))


def parts_of_three() -> dict[str, torch.Size]:
    return MergedLinear(4, {"q": 2, "k": 1, "v": 3}, bias=True).parts()


# --- Embedding and head -------------------------------------------------------------------------


@seeds
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_embedding_equals_torch_s(seed: int, dtype: torch.dtype) -> None:
    embedding, reference = Embedding(50, 9), torch.nn.Embedding(50, 9)
    reference.load_state_dict(fill(embedding, seed))
    ids = torch.tensor([0, 49, 7, 7, 13], dtype=dtype)
    assert_equal(embedding.forward(ids), reference(ids))


def ragged_prefill() -> Batch:
    """Requests that bring 5, 1 and 3 tokens; the last has four more in the cache."""
    return Batch([make_req(5), make_req(1), make_req(7, cached_len=4)], "prefill")


@seeds
def test_the_head_of_a_ragged_prefill_scores_the_last_token_of_each_request(seed: int) -> None:
    head = LMHead(50, 8)
    weight = fill(head, seed)["weight"]
    x = randn(seed + 50, 9, 8)
    with current(ragged_prefill()):
        logits = head.forward(x)
    assert_within(logits, x[[4, 5, 8]] @ weight.T)


@seeds
def test_the_head_of_a_decode_scores_every_row(seed: int) -> None:
    head = LMHead(50, 8)
    weight = fill(head, seed)["weight"]
    x = randn(seed + 50, 3, 8)
    with current(Batch([make_req(9, cached_len=8) for _ in range(3)], "decode")):
        logits = head.forward(x)
    assert_within(logits, x @ weight.T)


def test_the_head_computes_only_the_rows_that_are_sampled() -> None:
    head = LMHead(50, 8)
    fill(head)
    with current(ragged_prefill()), FlopCounterMode(display=False) as counter:
        head.forward(randn(1, 9, 8))
    assert counter.get_total_flops() == 2 * 3 * 8 * 50  # three rows of nine


def test_a_tied_head_uses_the_embedding_and_takes_nothing_from_the_checkpoint() -> None:
    embedding = Embedding(50, 8)
    tied, free = LMHead(50, 8, tied_to=embedding), LMHead(50, 8)
    assert tied.is_tied and not free.is_tied
    assert names_of(tied) == [] and names_of(free) == ["weight"]

    tied.materialize(torch.float32, CPU)
    free.materialize(torch.float32, CPU)
    free.load("weight", fill(embedding)["weight"])  # the embedding is filled after it was tied
    x = randn(1, 9, 8)
    with current(ragged_prefill()):
        assert_equal(tied.forward(x), free.forward(x))


# --- RMSNorm ------------------------------------------------------------------------------------


@seeds
@token_counts
@pytest.mark.parametrize("size", [1, 33, 576])
def test_rms_norm_equals_transformers(seed: int, num_tokens: int, size: int) -> None:
    norm, reference = RMSNorm(size, 1e-5), LlamaRMSNorm(size, 1e-5)
    reference.load_state_dict(fill(norm, seed))
    x = 10 * randn(seed + 50, num_tokens, size)
    assert_within(norm.forward(x), reference(x), 1e-6)


@seeds
def test_rms_norm_in_bfloat16_is_at_most_one_step_from_transformers(seed: int) -> None:
    norm, reference = RMSNorm(576, 1e-5), LlamaRMSNorm(576, 1e-5)
    reference.load_state_dict(fill(norm, seed, torch.bfloat16))
    x = 10 * randn(seed + 50, 17, 576, dtype=torch.bfloat16)
    expected = reference.bfloat16()(x)
    assert norm.forward(x).dtype == torch.bfloat16
    torch.testing.assert_close(norm.forward(x), expected, rtol=BF16_STEP, atol=0)


def test_rms_norm_squares_in_fp32_whatever_the_type() -> None:
    norm = RMSNorm(4, 1e-5)
    norm.materialize(torch.float16, CPU)
    norm.load("weight", torch.ones(4))
    x = torch.full((1, 4), 1000.0, dtype=torch.float16)  # its square is beyond fp16
    assert_equal(norm.forward(x), torch.ones_like(x))


def test_epsilon_keeps_a_zero_vector_finite() -> None:
    norm = RMSNorm(4, 1e-5)
    fill(norm)
    assert_equal(norm.forward(torch.zeros(2, 4)), torch.zeros(2, 4))


@seeds
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fused_add_equals_add_then_norm(seed: int, dtype: torch.dtype) -> None:
    norm = RMSNorm(33, 1e-5)
    fill(norm, seed, dtype)
    x, residual = randn(seed + 50, 17, 33, dtype=dtype), randn(seed + 60, 17, 33, dtype=dtype)
    added = x + residual
    normed, stream = norm.forward_add(x, residual)
    assert_equal(stream, added)
    assert_equal(normed, norm.forward(added))


def test_fused_add_keeps_the_residual_stream_in_its_place() -> None:
    norm = RMSNorm(33, 1e-5)
    fill(norm)
    x, residual = randn(1, 17, 33), randn(2, 17, 33)
    x_before = x.clone()
    _, stream = norm.forward_add(x, residual)
    assert stream.data_ptr() == residual.data_ptr()
    assert_equal(x, x_before)


# --- RoPE ---------------------------------------------------------------------------------------

LLAMA3 = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,  # so short that waves are kept, blended and stretched
}


def llama3_scaling(**changes: Any) -> Llama3Scaling:
    values: dict[str, Any] = {**LLAMA3, **changes}
    return Llama3Scaling(**values)


def llama3_rotary(head_dim: int) -> Rotary:
    return Rotary(RotaryConfig(head_dim, 10000.0, "llama3", llama3_scaling()))


def rotated_by_transformers(
    q: torch.Tensor, k: torch.Tensor, positions: torch.Tensor, rope: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    config = LlamaConfig(head_dim=q.shape[-1], rope_parameters={"rope_theta": 10000.0, **rope})
    cos, sin = LlamaRotaryEmbedding(config)(q, positions[None])
    heads_first = (x.transpose(0, 1)[None] for x in (q, k))  # [1, num_heads, num_tokens, head_dim]
    rotated = apply_rotary_pos_emb(*heads_first, cos, sin)
    return tuple(x[0].transpose(0, 1) for x in rotated)


@seeds
@pytest.mark.parametrize("head_dim", [2, 6, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_default_rope_equals_transformers(seed: int, head_dim: int, dtype: torch.dtype) -> None:
    q, k = randn(seed, 9, 5, head_dim, dtype=dtype), randn(seed + 1, 9, 1, head_dim, dtype=dtype)
    positions = torch.tensor([0, 1, 2, 3, 255, 257, 1000, 8191, 2])  # in any order
    rotation = Rotary(RotaryConfig(head_dim, 10000.0)).at(positions)
    expected_q, expected_k = rotated_by_transformers(q, k, positions, {"rope_type": "default"})
    assert_equal(rotation.apply(q), expected_q)
    assert_equal(rotation.apply(k), expected_k)


@seeds
@pytest.mark.parametrize("head_dim", [6, 64])
def test_llama3_rope_equals_transformers(seed: int, head_dim: int) -> None:
    q, k = randn(seed, 9, 5, head_dim), randn(seed + 1, 9, 1, head_dim)
    positions = torch.tensor([0, 1, 2, 3, 63, 64, 65, 511, 2])
    rotation = llama3_rotary(head_dim).at(positions)
    rope = {"rope_type": "llama3", **LLAMA3}
    expected_q, expected_k = rotated_by_transformers(q, k, positions, rope)
    assert_within(rotation.apply(q), expected_q)
    assert_within(rotation.apply(k), expected_k)
    plain = Rotary(RotaryConfig(head_dim, 10000.0)).at(positions)
    assert (plain.apply(q) - expected_q).abs().max() > 0.1  # the stretch is not a rounding error


def test_position_zero_is_not_rotated_and_no_position_changes_a_length() -> None:
    q = randn(0, 4, 3, 16)
    rotated = Rotary(RotaryConfig(16, 10000.0)).at(torch.tensor([0, 1, 100, 5000])).apply(q)
    assert_equal(rotated[0], q[0])
    assert_within(rotated.norm(dim=-1), q.norm(dim=-1))


def test_two_positions_meet_in_a_dot_product_only_as_their_difference() -> None:
    q, k = randn(0, 1, 1, 16), randn(1, 1, 1, 16)

    def score(query_at: int, key_at: int) -> torch.Tensor:
        rotary = Rotary(RotaryConfig(16, 10000.0))
        turned_q = rotary.at(torch.tensor([query_at])).apply(q)
        return (turned_q * rotary.at(torch.tensor([key_at])).apply(k)).sum()

    assert_within(score(7, 3), score(107, 103), 1e-4)
    assert (score(7, 3) - score(7, 4)).abs() > 0.1


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_positions_may_be_of_any_integer_type(dtype: torch.dtype) -> None:
    q = randn(0, 3, 2, 16)
    rotary = Rotary(RotaryConfig(16, 10000.0))
    positions = torch.tensor([0, 300, 5])
    expected = rotary.at(positions.float()).apply(q)
    assert_equal(rotary.at(positions.to(dtype)).apply(q), expected)


@pytest.mark.parametrize("rope_type", ["linear", "dynamic", "yarn", "longrope", "anything"])
def test_another_rope_type_is_refused_by_name(rope_type: str) -> None:
    with pytest.raises(ValueError, match=f"one of default, llama3, got '{rope_type}'"):
        Rotary(RotaryConfig(16, 10000.0, rope_type))


def test_llama3_and_its_scaling_go_together() -> None:
    with pytest.raises(ValueError, match="got 'llama3' with None"):
        Rotary(RotaryConfig(16, 10000.0, "llama3"))
    with pytest.raises(ValueError, match=r"got 'default' with Llama3Scaling\(factor=8\.0"):
        Rotary(RotaryConfig(16, 10000.0, "default", llama3_scaling()))


@pytest.mark.parametrize("theta", [None, "x", 0, -1.0, float("nan"), float("inf"), True])
def test_a_theta_that_is_not_positive_and_finite_is_refused(theta: Any) -> None:
    with pytest.raises(ValueError, match=f"rope_theta must be a finite number > 0, got {theta!r}"):
        RotaryConfig(16, theta)


@pytest.mark.parametrize("name", LLAMA3)
@pytest.mark.parametrize("value", [0, -2.0, "x", None, float("nan")])
def test_a_stretch_by_nonsense_is_refused(name: str, value: Any) -> None:
    low = 1.0 if name == "high_freq_factor" else 0
    with pytest.raises(ValueError, match=f"{name} must be a finite number > {low}, got {value!r}"):
        llama3_scaling(**{name: value})


@pytest.mark.parametrize("high", [0.5, 1.0])  # between equal limits nothing could be blended
def test_a_stretch_between_swapped_limits_is_refused(high: float) -> None:
    with pytest.raises(ValueError, match=f"high_freq_factor must be .* > 1.0, got {high}"):
        llama3_scaling(high_freq_factor=high)


def test_a_stretch_and_a_theta_may_be_integers_of_any_size() -> None:
    huge = dict.fromkeys(LLAMA3, 10**30) | {"high_freq_factor": 10**31}
    configs = [
        RotaryConfig(
            16, number(10**30), "llama3", llama3_scaling(**{n: number(v) for n, v in huge.items()})
        )
        for number in (int, float)
    ]
    q, positions = randn(0, 2, 3, 16), torch.tensor([0, 5])
    assert_equal(*(Rotary(config).at(positions).apply(q) for config in configs))


def test_the_frequencies_are_not_weights_and_stay_fp32() -> None:
    """Angles in a 16-bit type would be wrong from position 256 on."""
    rotary, positions = llama3_rotary(64), torch.tensor([0, 1, 257, 8191])
    expected = rotary.at(positions)
    rotary.materialize(torch.bfloat16, CPU)
    assert names_of(rotary) == [] and tensors_of(rotary) == []
    rotation = rotary.at(positions)
    assert_equal(rotation.cos, expected.cos)
    assert_equal(rotation.sin, expected.sin)


class Moves(TorchDispatchMode):
    """Records each operator whose result lies on another device than its first tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> torch.Tensor:
        result = func(*args, **(kwargs or {}))
        before = next((arg for arg in args if isinstance(arg, torch.Tensor)), result)
        if before.device != result.device:
            self.found.append(str(func))
        return result


def test_the_frequencies_move_to_the_device_once_and_not_in_each_pass() -> None:
    """A copy to a GPU makes each pass wait; the meta device stands for one."""
    meta = torch.device("meta")
    rotary, positions = llama3_rotary(64), torch.empty(5, dtype=torch.int32, device=meta)
    with Moves() as moves:
        rotary.materialize(torch.bfloat16, meta)
    assert len(moves.found) == 1
    with Moves() as moves:
        rotation = rotary.at(positions)
    assert moves.found == []
    assert (rotation.cos.device, rotation.cos.dtype) == (meta, torch.float32)


# --- SwiGLU -------------------------------------------------------------------------------------


@seeds
@token_counts
def test_a_merged_gate_and_silu_and_mul_equal_transformers_mlp(seed: int, num_tokens: int) -> None:
    gate_up = MergedLinear(33, {"gate_proj": 50, "up_proj": 50}, bias=False)
    down = Linear(50, 33, bias=False)
    config = LlamaConfig(hidden_size=33, intermediate_size=50, num_attention_heads=3, head_dim=2)
    reference = LlamaMLP(config)
    tensors = fill(gate_up, seed)
    reference.load_state_dict({**tensors, "down_proj.weight": fill(down, seed + 9)["weight"]})
    x = randn(seed + 50, num_tokens, 33)
    assert_within(down.forward(silu_and_mul(*gate_up.forward_split(x))), reference(x))


@seeds
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_silu_and_mul_equals_its_definition(seed: int, dtype: torch.dtype) -> None:
    gate, up = 5 * randn(seed, 17, 33, dtype=dtype), randn(seed + 1, 17, 33, dtype=dtype)
    gate_before, up_before = gate.clone(), up.clone()
    assert_equal(silu_and_mul(gate, up), torch.nn.functional.silu(gate_before) * up_before)
    assert_equal(gate, gate_before)
    assert_equal(up, up_before)


# --- Attention ----------------------------------------------------------------------------------

KINDS = ("llama", "llama_biased", "multi_query", "every_head_its_own", "qwen2", "qwen3")


def make_attention(*args: int, **options: Any) -> Attention:
    """From chapter 5 on a layer has a number too, by which it finds its keys and values."""
    if "layer_id" in signature(Attention).parameters:
        options["layer_id"] = 0
    return Attention(*args, **options)


def attention_pair(kind: str, seed: int, dtype: torch.dtype = torch.float32) -> tuple[Any, ...]:
    """Our layer and transformers' with the same weights, and the shape of a head."""
    heads, kv_heads = {"multi_query": (6, 1), "every_head_its_own": (6, 6)}.get(kind, (6, 2))
    head_dim = 10 if kind == "qwen3" else 8  # 6 * 10 is not the hidden size
    has_bias = kind in ("llama_biased", "qwen2")
    shape = {
        "hidden_size": 48,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "attn_implementation": "eager",
    }
    reference = {
        "qwen2": lambda: Qwen2Attention(Qwen2Config(**shape), 0),
        "qwen3": lambda: Qwen3Attention(Qwen3Config(**shape, rms_norm_eps=1e-6), 0),
    }.get(kind, lambda: LlamaAttention(LlamaConfig(**shape, attention_bias=has_bias), 0))()
    ours = make_attention(
        48,
        heads,
        kv_heads,
        head_dim,
        qkv_bias=has_bias,
        o_bias=kind == "llama_biased",
        qk_norm_eps=1e-6 if kind == "qwen3" else None,
    )
    # Strict: the names of our slots are exactly the names of transformers' parameters.
    reference.load_state_dict(fill(ours, seed, dtype))
    return ours, reference.to(dtype).eval(), head_dim


def attend_to_itself(layer: Attention, x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    with current(prompt_batch(torch.zeros(len(x)))):
        return layer.forward(x, rotation)


def run_pair(
    kind: str, seed: int, num_tokens: int, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, torch.Tensor]:
    ours, reference, head_dim = attention_pair(kind, seed, dtype)
    x = 1.5 * randn(seed + 50, num_tokens, 48, dtype=dtype)
    positions = torch.arange(num_tokens)
    rotation = Rotary(RotaryConfig(head_dim, 10000.0)).at(positions)
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    config = LlamaConfig(head_dim=head_dim, rope_parameters=rope)
    cos_sin = LlamaRotaryEmbedding(config)(x, positions[None])
    mask = torch.full((num_tokens, num_tokens), -torch.inf, dtype=dtype).triu(1)
    with torch.inference_mode():
        expected = reference(x[None], position_embeddings=cos_sin, attention_mask=mask)[0][0]
        return attend_to_itself(ours, x, rotation), expected


@seeds
@token_counts
@pytest.mark.parametrize("kind", KINDS)
def test_attention_equals_transformers(kind: str, seed: int, num_tokens: int) -> None:
    assert_within(*run_pair(kind, seed, num_tokens))


@seeds
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_attention_in_bfloat16_is_within_two_steps_of_transformers(kind: str, seed: int) -> None:
    actual, expected = run_pair(kind, seed, 17, torch.bfloat16)
    assert actual.dtype == torch.bfloat16
    assert (actual - expected).abs().max() <= 2 * BF16_STEP * expected.abs().max()


@seeds
@pytest.mark.parametrize("heads", [(1, 1), (6, 1), (6, 3), (9, 3)])
def test_attend_equals_its_definition(seed: int, heads: tuple[int, int]) -> None:
    num_qo_heads, num_kv_heads = heads
    q, k = 3 * randn(seed, 17, num_qo_heads, 10), randn(seed + 1, 17, num_kv_heads, 10)
    v = randn(seed + 2, 17, num_kv_heads, 10)
    expected = torch.empty_like(q)
    for head in range(num_qo_heads):
        shared = head // (num_qo_heads // num_kv_heads)
        for row in range(17):
            scores = k[: row + 1, shared] @ q[row, head] / 10**0.5
            expected[row, head] = scores.softmax(0) @ v[: row + 1, shared]
    # By name, since chapter 7 moves it to a place of its own.
    layer = import_module("minisgl.layers.attention")
    assert_within(layer.attend(q, k, v), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_token_changes_no_earlier_row(kind: str) -> None:
    ours, _, head_dim = attention_pair(kind, seed=0)
    rotation = Rotary(RotaryConfig(head_dim, 10000.0)).at(torch.arange(17))
    x = 1.5 * randn(1, 17, 48)
    changed = x.clone()
    changed[9] = 1.5 * randn(2, 48)
    before = attend_to_itself(ours, x, rotation)
    after = attend_to_itself(ours, changed, rotation)
    assert_equal(after[:9], before[:9])
    # … and the mask is not too strict: the token itself and all after it see the change.
    assert ((after[9:] - before[9:]).abs().amax(dim=-1) > 1e-3).all()


def test_a_prefix_computes_the_same_alone_and_in_front_of_more() -> None:
    ours, _, head_dim = attention_pair("llama", seed=0)
    rotary = Rotary(RotaryConfig(head_dim, 10000.0))
    x = 1.5 * randn(1, 17, 48)
    whole = attend_to_itself(ours, x, rotary.at(torch.arange(17)))
    for length in (1, 2, 16):
        prefix = attend_to_itself(ours, x[:length], rotary.at(torch.arange(length)))
        assert_within(prefix, whole[:length])
