"""Chapter 3: one decoder computes every architecture, and every weight finds its place or is named.

The oracle is transformers on the same folder. What the decoder would compute wrongly must be
refused by name, before any weight is read.
"""

import json
import reprlib
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from minisgl.layers.base import Layer
from minisgl.layers.rotary import RotaryConfig
from minisgl.models import folder as models_folder
from minisgl.models.config import ModelConfig
from minisgl.models.decoder import CausalLM
from minisgl.models.folder import resolve_model
from minisgl.models.register import ARCHITECTURES as KNOWN
from minisgl.models.weight import load_model, weight_files
from minisgl.tokenizer.load import eos_token_ids, load_tokenizer
from tiny_models import ARCHITECTURES, BOS, IM_END, IM_START, make_tiny_model
from whole_prompt import current, prompt_batch

CPU = torch.device("cpu")
INDEX = "model.safetensors.index.json"
BOUND = 1e-3  # on logits with a standard deviation of 16: six digits are right

TinyModel = Callable[[str], Path]


@pytest.fixture(params=ARCHITECTURES)
def arch(request: pytest.FixtureRequest) -> str:
    return request.param


def some_ids(seed: int, length: int, vocab_size: int = 384) -> torch.Tensor:
    return torch.randint(vocab_size, (length,), generator=torch.Generator().manual_seed(seed))


def compute(model: CausalLM, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Logits [vocab_size] of the token that follows `ids`."""
    with current(prompt_batch(ids, positions)), torch.inference_mode():
        return model.forward()[0]


def load(folder: Path, dtype: torch.dtype = torch.float32) -> CausalLM:
    return load_model(folder, dtype, CPU)[0]


def last_logits(folder: Path, ids: torch.Tensor) -> torch.Tensor:
    return compute(load(folder), ids, torch.arange(len(ids)))


def reference_model(folder: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def reference_logits(
    model: PreTrainedModel, ids: torch.Tensor, positions: torch.Tensor | None = None
) -> torch.Tensor:
    """Transformers' logits [num_tokens, vocab_size], one row for each position."""
    where = torch.arange(len(ids)) if positions is None else positions
    with torch.inference_mode():
        return model(ids[None], position_ids=where[None]).logits[0]


def assert_same_logits(folder: Path, lengths: tuple[int, ...] = (1, 2, 33, 100)) -> None:
    """Our logits after prompts of these lengths are transformers', and so is the best token."""
    model, reference = load(folder), reference_model(folder)
    for length in lengths:
        ids = some_ids(length, length)
        expected = reference_logits(reference, ids)[-1]
        actual = compute(model, ids, torch.arange(length))
        assert (actual - expected).abs().max() <= BOUND
        assert actual.argmax() == expected.argmax()


def edit_json(path: Path, **changes: Any) -> None:
    """Change entries of a JSON file; None takes one out."""
    content = {**json.loads(path.read_text("utf-8")), **changes}
    kept = {name: value for name, value in content.items() if value is not None}
    path.write_text(json.dumps(kept), "utf-8")


def set_json(path: Path, name: str, value: Any) -> None:
    """Set one entry of a JSON file, even to null."""
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), name: value}), "utf-8")


def edit_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    (folder / "model.safetensors").unlink()  # the tensors may still be mapped from it
    save_file(tensors, folder / "model.safetensors")


def split_into_shards(folder: Path, count: int) -> list[Path]:
    """Replace the single file of weights by shards and their index, as big models have them."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    files = [f"model-{n + 1:05}-of-{count:05}.safetensors" for n in range(count)]
    owner = {name: files[n % count] for n, name in enumerate(sorted(tensors))}
    for file in files:
        own = {name: tensors[name] for name in tensors if owner[name] == file}
        save_file(own, folder / file)
    index = {"metadata": {}, "weight_map": owner}
    (folder / INDEX).write_text(json.dumps(index), "utf-8")
    return [folder / file for file in files]


# --- Logits -------------------------------------------------------------------------------------


def test_logits_equal_transformers(arch: str, tiny_model: TinyModel) -> None:
    assert_same_logits(tiny_model(arch))


VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama, biases everywhere": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, biases of attention": ("llama", {"attention_bias": True}),
    "llama, biases of the MLP": ("llama", {"mlp_bias": True}),
    "llama, head_dim of its own": ("llama", {"head_dim": 24}),
    "llama, one key-value head": ("llama", {"num_key_value_heads": 1}),
    "llama, as many as query heads": ("llama", {"num_key_value_heads": 6}),
    "llama, untied": ("llama", {"tie_word_embeddings": False}),
    "llama, large epsilon": ("llama", {"rms_norm_eps": 1.0}),
    "mistral, head_dim of its own": ("mistral", {"head_dim": 32}),
    "mistral, a window as long as the context": ("mistral", {"sliding_window": 1024}),
    "qwen2, untied": ("qwen2", {"tie_word_embeddings": False}),
    "qwen2, a window that no layer uses": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 3},
    ),
    "qwen3, a window that is switched off": (
        "qwen3",
        {"use_sliding_window": False, "sliding_window": 8, "max_window_layers": 0},
    ),
    "qwen3, a window that its list of layers does not use": (
        "qwen3",
        {
            "use_sliding_window": True,
            "sliding_window": 8,
            "max_window_layers": 0,
            "layer_types": ["full_attention"] * 3,
        },
    ),
    "llama, silu under its other name": ("llama", {"hidden_act": "swish"}),
    "qwen3, biases": ("qwen3", {"attention_bias": True}),
    "qwen3, a flag that it ignores": ("qwen3", {"mlp_bias": True}),
    "qwen2, flags that it ignores": ("qwen2", {"attention_bias": True, "mlp_bias": True}),
    "mistral, flags that it ignores": ("mistral", {"attention_bias": True, "mlp_bias": True}),
    "qwen3, tied": ("qwen3", {"tie_word_embeddings": True}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_config_shapes_the_decoder(variant: str, tmp_path: Path) -> None:
    arch, overrides = VARIANTS[variant]
    assert_same_logits(make_tiny_model(arch, tmp_path, **overrides), lengths=(1, 33))


def test_one_layer_and_many(tmp_path: Path) -> None:
    for layers in (1, 12):
        folder = make_tiny_model("llama", tmp_path / str(layers), num_hidden_layers=layers)
        assert len(list(load(folder).model.layers)) == layers
        assert_same_logits(folder, lengths=(33,))


def test_positions_come_from_the_batch(arch: str, tiny_model: TinyModel) -> None:
    folder, ids = tiny_model(arch), some_ids(1, 33)
    stretched = 3 * torch.arange(33)
    expected = reference_logits(reference_model(folder), ids, stretched)[-1]
    actual = compute(load(folder), ids, stretched)
    assert (actual - expected).abs().max() <= BOUND
    assert (actual - last_logits(folder, ids)).abs().max() > 1  # they matter


def test_every_token_of_the_prompt_matters_and_so_does_their_order(
    arch: str, tiny_model: TinyModel
) -> None:
    model = load(tiny_model(arch))
    ids, positions = some_ids(1, 8), torch.arange(8)
    logits = compute(model, ids, positions)
    for place in range(8):
        changed = ids.clone()
        changed[place] = (ids[place] + 1) % 384
        assert (compute(model, changed, positions) - logits).abs().max() > 0.01
    swapped = ids[[1, 0, *range(2, 8)]]
    assert (compute(model, swapped, positions) - logits).abs().max() > 0.01


def test_the_model_computes_in_the_type_it_is_loaded_in(tiny_model: TinyModel) -> None:
    folder, ids = tiny_model("qwen3"), some_ids(1, 33)
    model = load(folder, torch.bfloat16)
    logits = compute(model, ids, torch.arange(33))
    assert logits.dtype == torch.bfloat16
    exact = last_logits(folder, ids)
    assert (logits.float() - exact).norm() / exact.norm() < 0.1  # 8 bits of mantissa are left


def test_there_are_no_logits_without_a_current_batch(tiny_model: TinyModel) -> None:
    model = load(tiny_model("llama"))
    compute(model, some_ids(1, 3), torch.arange(3))  # it leaves none behind
    with pytest.raises(AssertionError):
        model.forward()


TEXTS = [
    "The capital of France is",
    "请解释什么是 KV Cache？",
    "def fibonacci(n):\n",
    "a",
    "To be, or not to be: that is the question. " * 18,
]


@pytest.mark.slow
def test_logits_of_the_real_model_equal_transformers(real_model: Path) -> None:
    """After each of the texts, and after the first half of it."""
    tokenizer = AutoTokenizer.from_pretrained(real_model)
    model, reference = load(real_model), reference_model(real_model)
    for text in TEXTS:
        ids = torch.tensor(tokenizer(text)["input_ids"])
        expected = reference_logits(reference, ids)
        for length in {len(ids), (len(ids) + 1) // 2}:
            actual = compute(model, ids[:length], torch.arange(length))
            assert (actual - expected[length - 1]).abs().max() <= BOUND
            assert actual.argmax() == expected[length - 1].argmax()


# --- The tree of names --------------------------------------------------------------------------


def tensors_of(layer: Layer) -> list[torch.Tensor]:
    own = list(layer.weights().values())
    return own + [tensor for _, child in layer.children() for tensor in tensors_of(child)]


def test_a_model_is_born_without_memory() -> None:
    config = ModelConfig(  # of 1.7 trillion weights
        vocab_size=200_000,
        hidden_size=32_768,
        intermediate_size=131_072,
        num_layers=120,
        num_qo_heads=256,
        num_kv_heads=16,
        head_dim=128,
        rms_norm_eps=1e-5,
        rotary=RotaryConfig(128, 1e6),
        qkv_bias=True,
        o_bias=True,
        mlp_bias=True,
        qk_norm=True,
        tie_word_embeddings=False,
        max_position_embeddings=131_072,
    )
    tensors = tensors_of(CausalLM(config))
    assert sum(tensor.numel() for tensor in tensors) > 1.7e12
    assert all(tensor.is_meta for tensor in tensors)


def test_the_rope_frequencies_go_to_the_model_s_device(tiny_model: TinyModel) -> None:
    """With the weights, so that no forward pass copies them; the meta device stands for a GPU."""
    model, meta = CausalLM(ModelConfig.from_folder(tiny_model("llama"))), torch.device("meta")
    model.materialize(torch.bfloat16, meta)
    rotation = model.model.rotary.at(torch.zeros(3, dtype=torch.int32, device=meta))
    assert (rotation.cos.device, rotation.cos.dtype) == (meta, torch.float32)


def test_the_slots_are_the_names_of_the_checkpoint(arch: str, tiny_model: TinyModel) -> None:
    folder = tiny_model(arch)
    slots = {name: layer.parts()[part] for name, layer, part in load(folder).slots()}
    stored = load_file(folder / "model.safetensors")
    assert slots == {name: tensor.shape for name, tensor in stored.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_weight_arrives_in_its_place_and_type(dtype: torch.dtype, tmp_path: Path) -> None:
    folder = make_tiny_model("qwen2", tmp_path)
    stored = load_file(folder / "model.safetensors")
    model = load(folder, dtype)
    assert {tensor.dtype for tensor in tensors_of(model)} == {dtype}
    first = next(iter(model.model.layers))
    merged = [stored[f"model.layers.0.self_attn.{name}_proj.weight"] for name in "qkv"]
    assert torch.equal(first.self_attn.qkv_proj.weight, torch.cat(merged).to(dtype))
    assert torch.equal(model.model.norm.weight, stored["model.norm.weight"].to(dtype))


def test_a_checkpoint_in_bfloat16_loads_into_fp32(tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path)

    def halve(tensors: dict[str, torch.Tensor]) -> None:
        tensors.update({name: tensor.bfloat16() for name, tensor in tensors.items()})

    edit_tensors(folder, halve)
    assert load(folder).model.norm.weight.dtype == torch.float32
    assert_same_logits(folder, lengths=(33,))


# --- What the config says -----------------------------------------------------------------------


def config_of(arch: str, folder: Path, **overrides: Any) -> ModelConfig:
    return ModelConfig.from_folder(make_tiny_model(arch, folder, **overrides))


def test_every_known_architecture_has_a_tiny_model(tiny_model: TinyModel) -> None:
    """So that no architecture is added without a comparison with transformers."""
    names = set()
    for arch in ARCHITECTURES:
        raw = json.loads((tiny_model(arch) / "config.json").read_text("utf-8"))
        names.update(raw["architectures"])
        assert ModelConfig.from_folder(tiny_model(arch)).vocab_size == raw["vocab_size"]
    assert names == set(KNOWN)


def test_the_config_says_what_the_folder_says(tmp_path: Path) -> None:
    config = config_of("qwen3", tmp_path)
    assert (config.hidden_size, config.num_layers, config.intermediate_size) == (64, 3, 96)
    assert (config.num_qo_heads, config.num_kv_heads, config.head_dim) == (4, 2, 32)
    assert (config.qk_norm, config.qkv_bias, config.o_bias, config.mlp_bias) == (
        True,
        False,
        False,
        False,
    )
    assert config.max_position_embeddings == 1024


def test_head_dim_follows_from_the_heads_where_the_config_is_silent(tmp_path: Path) -> None:
    assert config_of("llama", tmp_path).head_dim == 96 // 6


def test_a_folder_that_transformers_saved_today_loads_too(arch: str, tmp_path: Path) -> None:
    """Its config.json spells RoPE and the type differently from older ones."""
    model = reference_model(make_tiny_model(arch, tmp_path / "old"))
    model.save_pretrained(tmp_path / "new", max_shard_size="100KB")
    assert (tmp_path / "new" / INDEX).exists()
    ids = some_ids(1, 33)
    expected = reference_logits(model, ids)[-1]
    assert (last_logits(tmp_path / "new", ids) - expected).abs().max() <= BOUND


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256}
UNSUPPORTED: dict[str, tuple[str, dict[str, Any], str]] = {
    "architecture": ("llama", {"architectures": ["GPT2LMHeadModel"]}, "one of .*GPT2LMHeadModel"),
    "no architecture": ("llama", {"architectures": None}, "LlamaForCausalLM.*has None"),
    "an architecture that is not a name": ("llama", {"architectures": [["a"]]}, r"has \['a'\]"),
    "yarn": ("llama", {"rope_scaling": YARN}, "RoPE type .*'yarn'"),
    "linear RoPE": ("qwen2", {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, "'linear'"),
    "dynamic RoPE": ("llama", {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "'dynamic'"),
    "partial rotation": (
        "llama",
        {"rope_scaling": {"rope_type": "default", "partial_rotary_factor": 0.5}},
        "partial_rotary_factor .*0.5",
    ),
    "RoPE by layer": (
        "qwen3",
        {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}}},
        "rope_theta .*None",
    ),
    "sliding window": ("mistral", {"sliding_window": 512}, "sliding_window .*512"),
    "a window that is not a number": ("llama", {"sliding_window": "a"}, "sliding_window .*'a'"),
    "window of the last layer": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 100, "max_window_layers": 2},
        "sliding_window .*100",
    ),
    "window of a layer in a list": (
        "qwen3",
        {
            "use_sliding_window": True,
            "sliding_window": 100,
            "layer_types": ["full_attention", "sliding_attention", "full_attention"],
        },
        "sliding_window .*100",
    ),
    "another kind of layer": (
        "qwen2",
        {"layer_types": ["full_attention", "linear_attention", "full_attention"]},
        "layer_types .*linear_attention",
    ),
    "query heads that do not divide": (
        "llama3",
        {"num_key_value_heads": 3},
        r"num_attention_heads must be a multiple of num_key_value_heads \(3\), .* has 4",
    ),
    "more key-value heads than query heads": (
        "llama",
        {"num_key_value_heads": 12},
        r"num_attention_heads must be a multiple of num_key_value_heads \(12\), .* has 6",
    ),
    "odd head_dim": ("llama", {"head_dim": 15}, "even .*15"),
    "quantization": (
        "llama",
        {"quantization_config": {"quant_method": "gptq", "bits": 4}},
        "quantization_config .*gptq",
    ),
    "activation": ("llama", {"hidden_act": "gelu"}, "hidden_act .*gelu"),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_what_would_be_computed_wrongly_is_refused_by_name(case: str, tmp_path: Path) -> None:
    arch, overrides, message = UNSUPPORTED[case]
    folder = make_tiny_model(arch, tmp_path, **overrides)
    (folder / "model.safetensors").unlink()  # refused before a gigabyte is read
    with pytest.raises(ValueError, match=message):
        load(folder)


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
NONSENSE: list[tuple[str, Any]] = [
    *[("rope_theta", value) for value in (None, "x", 0, -1.0, float("nan"))],
    *[("vocab_size", value) for value in (0, -1, 384.0, "many", True, 10**30)],
    *[("head_dim", value) for value in (0, -16, 10**30)],
    ("hidden_size", 0),
    *[("intermediate_size", value) for value in (-1, 10**12)],
    *[("num_hidden_layers", value) for value in (0, 10**6)],  # so many would take a minute
    *[("num_attention_heads", value) for value in (-6, 0)],
    ("num_key_value_heads", 0),
    ("max_position_embeddings", 0),
    ("rms_norm_eps", float("nan")),
]


@pytest.mark.parametrize(("name", "value"), NONSENSE)
def test_a_number_that_is_not_positive_and_finite_is_refused(
    name: str, value: Any, tmp_path: Path
) -> None:
    folder = make_tiny_model("llama", tmp_path)
    set_json(folder / "config.json", name, value)
    rule = r"(a finite number > 0|an integer ≥ 1 and ≤ \d+)"
    with pytest.raises(ValueError, match=f"^{name} .*must be {rule}, got {reprlib.repr(value)}$"):
        ModelConfig.from_folder(folder)


def test_weights_that_no_memory_holds_are_refused(tmp_path: Path) -> None:
    folder = make_tiny_model("llama3", tmp_path)
    edit_json(folder / "config.json", vocab_size=2**31 - 1, hidden_size=2**30)
    with pytest.raises(ValueError, match=r"^the weights must fit in the memory of cpu: .*allocate"):
        load(folder)


@pytest.mark.parametrize("name", [name for name in LLAMA3 if name != "rope_type"])
@pytest.mark.parametrize("value", [0, -2.0, "x"])
def test_a_stretch_of_rope_by_nonsense_is_refused(name: str, value: Any, tmp_path: Path) -> None:
    folder = make_tiny_model("llama3", tmp_path)
    edit_json(folder / "config.json", rope_scaling={**LLAMA3, name: value})
    rule = rf"^{name} must be a finite number > |transformers rejects .*config\.json"
    with pytest.raises(ValueError, match=rule):
        ModelConfig.from_folder(folder)


@pytest.mark.parametrize("high", [0.5, 1.0])
def test_a_stretch_of_rope_between_swapped_limits_is_refused(high: float, tmp_path: Path) -> None:
    folder = make_tiny_model("llama3", tmp_path)
    edit_json(folder / "config.json", rope_scaling={**LLAMA3, "high_freq_factor": high})
    with pytest.raises(ValueError, match=rf"high_freq_factor must be .* > 1\.0, got {high}"):
        ModelConfig.from_folder(folder)


@pytest.mark.parametrize("model_type", ["qwen2", "mistral", "gpt2", "unheard-of"])
def test_a_model_type_of_another_architecture_is_refused(model_type: str, tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path)
    edit_json(folder / "config.json", model_type=model_type)
    with pytest.raises(ValueError, match=f"model_type must be llama .*has '{model_type}'"):
        ModelConfig.from_folder(folder)


def test_an_explanation_by_transformers_is_passed_on_as_one_line(tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path)
    edit_json(folder / "config.json", tie_word_embeddings="maybe")
    with pytest.raises(ValueError, match=r"transformers rejects .*config\.json: .*maybe") as error:
        ModelConfig.from_folder(folder)
    assert "\n" not in str(error.value)


CODE = """
from transformers import LlamaConfig


class OtherConfig(LlamaConfig):
    model_type = "other"


raise RuntimeError("code from the folder was run")
"""


@pytest.fixture
def nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where the standard input is read: a server that waits for an answer hangs."""

    def fail(question: str) -> str:
        pytest.fail(f"asked: {question}")

    monkeypatch.setattr("builtins.input", fail)


@pytest.mark.parametrize("model_type", ["other", None])
def test_a_folder_that_needs_code_of_its_own_is_refused_without_a_question(
    model_type: str | None, tmp_path: Path, nobody_is_asked: None
) -> None:
    folder = make_tiny_model("llama", tmp_path)
    (folder / "other.py").write_text(CODE, "utf-8")
    auto_map = {"AutoConfig": "other.OtherConfig"}
    edit_json(folder / "config.json", auto_map=auto_map, model_type=model_type)
    with pytest.raises(ValueError, match=f"model_type must be llama .* has {model_type!r}"):
        load(folder)


def test_code_in_the_folder_of_a_known_model_is_not_run(
    tmp_path: Path, nobody_is_asked: None
) -> None:
    folder = make_tiny_model("llama", tmp_path)
    (folder / "other.py").write_text(CODE, "utf-8")
    edit_json(folder / "config.json", auto_map={"AutoConfig": "other.OtherConfig"})
    load(folder)


# --- Where the model lies -----------------------------------------------------------------------


def test_a_model_is_a_folder_or_what_the_hub_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def hub(name: str, *, allow_patterns: list[str], **_: Any) -> str:
        asked.append(name)
        assert "*.safetensors" in allow_patterns
        if name != "org/known":
            raise LocalEntryNotFoundError("offline")
        return str(tmp_path)

    monkeypatch.setattr(models_folder, "snapshot_download", hub)
    assert resolve_model(tmp_path) == resolve_model(str(tmp_path)) == tmp_path
    assert asked == []
    assert resolve_model("org/known") == tmp_path
    with pytest.raises(
        ValueError, match=r"org/unknown .*LocalEntryNotFoundError.*: check the name"
    ):
        resolve_model("org/unknown")
    assert asked == ["org/known", "org/unknown"]


def test_a_model_may_lie_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert resolve_model("~/model") == tmp_path / "model"


def test_a_path_that_is_not_there_is_no_name_of_a_repository(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_text("")
    for path in (tmp_path / "absent", tmp_path / "model.gguf"):
        with pytest.raises(ValueError, match=f"{path} is not a folder here") as error:
            resolve_model(path)
        assert isinstance(error.value.__cause__, HFValidationError)  # nobody was asked


@pytest.mark.parametrize("model", ["~nobody-of-this-name/model", "m" * 5000])
def test_a_path_that_cannot_be_is_refused_as_one_that_is_not_there(model: str) -> None:
    with pytest.raises(ValueError, match=f"{model} is not a folder here"):
        resolve_model(model)


@pytest.mark.parametrize("model", [5, None, b"model"])
def test_a_model_that_is_not_named_by_a_text_or_path_is_refused(model: Any) -> None:
    with pytest.raises(ValueError, match=f"got {model!r}"):
        resolve_model(model)


# --- The tokenizer, and the tokens that end an answer -------------------------------------------


@pytest.mark.parametrize("text", ["The engine reads", "请求等待,然后", " \n\n\tx  ", "😀", BOS, ""])
def test_the_tokenizer_is_transformers(arch: str, text: str, tiny_model: TinyModel) -> None:
    tokenizer = load_tokenizer(tiny_model(arch))
    ids = tokenizer(text)["input_ids"]
    assert ids == AutoTokenizer.from_pretrained(tiny_model(arch))(text)["input_ids"]
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("name", [None, "LlamaTokenizerFast", "LlamaTokenizer", "Qwen2Tokenizer"])
def test_a_folder_without_a_tokenizer_is_refused(name: str | None, tmp_path: Path) -> None:
    """From the name of a class alone transformers makes a tokenizer that knows next to nothing."""
    folder = make_tiny_model("qwen2", tmp_path)
    (folder / "tokenizer.json").unlink()
    edit_json(folder / "tokenizer_config.json", tokenizer_class=name)
    with pytest.raises(ValueError, match=r"must hold tokenizer\.json") as error:
        load_tokenizer(folder)
    assert str(folder) in str(error.value)


NO_TOKENIZER: dict[str, tuple[str, str]] = {
    "broken": ("tokenizer.json", "{"),
    "not an object": ("tokenizer.json", "[1, 2]"),
    "of nothing": ("tokenizer.json", '{"version": "1.0"}'),
    "deeply nested": ("tokenizer.json", '{"a":' + "[" * 200_000 + "]" * 200_000 + "}"),
    "broken config": ("tokenizer_config.json", "{"),
    "an end that is not a text": ("tokenizer_config.json", '{"eos_token": 5}'),
}


@pytest.mark.parametrize("case", NO_TOKENIZER)
def test_a_tokenizer_that_does_not_load_is_refused_with_its_path(case: str, tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path)
    name, content = NO_TOKENIZER[case]
    (folder / name).write_text(content, "utf-8")
    with pytest.raises(ValueError, match=r"tokenizer\.json") as error:
        load_tokenizer(folder)
    assert str(folder) in str(error.value)


def with_code_of_its_own(folder: Path, tokenizer_class: str) -> Path:
    (folder / "other.py").write_text(CODE, "utf-8")
    edit_json(
        folder / "tokenizer_config.json",
        auto_map={"AutoTokenizer": ["other.OtherTokenizer", None]},
        tokenizer_class=tokenizer_class,
    )
    return folder


def test_a_tokenizer_that_needs_code_of_its_own_is_refused_without_a_question(
    tmp_path: Path, nobody_is_asked: None
) -> None:
    folder = with_code_of_its_own(make_tiny_model("llama", tmp_path), "OtherTokenizer")
    with pytest.raises(ValueError, match="custom code"):
        load_tokenizer(folder)


def test_code_beside_a_tokenizer_of_a_known_class_is_not_run(
    tmp_path: Path, nobody_is_asked: None
) -> None:
    folder = with_code_of_its_own(make_tiny_model("llama", tmp_path), "PreTrainedTokenizerFast")
    assert load_tokenizer(folder)("The")["input_ids"]


def ends_of(folder: Path) -> frozenset[int]:
    return eos_token_ids(folder, load_tokenizer(folder))


def without_ends(folder: Path) -> Path:
    """A tiny model none of whose files names the end of an answer."""
    make_tiny_model("llama", folder)
    edit_json(folder / "config.json", eos_token_id=None)
    edit_json(folder / "generation_config.json", eos_token_id=None)
    edit_json(folder / "tokenizer_config.json", eos_token=None)
    return folder


ADDED = {"content": "<end>", "special": True, "normalized": False}
ONLY_HERE: dict[str, tuple[dict[str, dict[str, Any]], set[int]]] = {
    "nowhere": ({}, set()),
    "config": ({"config.json": {"eos_token_id": 7}}, {7}),
    "config, a list": ({"config.json": {"eos_token_id": [5, 4]}}, {4, 5}),
    "config, the id 0": ({"config.json": {"eos_token_id": 0}}, {0}),
    "generation config": ({"generation_config.json": {"eos_token_id": 7}}, {7}),
    "generation config, a list": ({"generation_config.json": {"eos_token_id": [8, 7, 8]}}, {7, 8}),
    "generation config, an empty list": ({"generation_config.json": {"eos_token_id": []}}, set()),
    "tokenizer config": ({"tokenizer_config.json": {"eos_token": IM_START}}, {1}),
    "tokenizer config, with its properties": (
        {"tokenizer_config.json": {"eos_token": {"__type": "AddedToken", "content": IM_END}}},
        {2},
    ),
    "special tokens map": ({"special_tokens_map.json": {"eos_token": IM_END}}, {2}),
    "special tokens map, with its properties": (
        {"special_tokens_map.json": {"eos_token": {"content": IM_END, "lstrip": False}}},
        {2},
    ),
    "added tokens": (  # the vocabulary of tokenizer.json ends at 383
        {"tokenizer_config.json": {"eos_token": "<end>", "added_tokens_decoder": {"384": ADDED}}},
        {384},
    ),
    "everywhere": (
        {
            "config.json": {"eos_token_id": 9},
            "generation_config.json": {"eos_token_id": [8, 2]},
            "tokenizer_config.json": {"eos_token": IM_START},
        },
        {1, 2, 8, 9},
    ),
}


@pytest.mark.parametrize("where", ONLY_HERE)
def test_every_file_may_name_a_token_that_ends_an_answer(where: str, tmp_path: Path) -> None:
    """A model that runs past its end is what a user sees of a name that was not read."""
    folder = without_ends(tmp_path)
    files, expected = ONLY_HERE[where]
    for name, entries in files.items():
        if not (folder / name).exists():
            (folder / name).write_text("{}", "utf-8")
        edit_json(folder / name, **entries)
    assert ends_of(folder) == expected


def test_a_folder_without_generation_config_has_the_ends_of_the_others(tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path, eos_token_id=7)
    (folder / "generation_config.json").unlink()
    assert ends_of(folder) == {2, 7}
    (folder / "tokenizer_config.json").unlink()
    assert ends_of(folder) == {7}


@pytest.mark.parametrize("value", ["x", [None], {"a": 1}, 2.5, True, [[1]]])
@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
def test_an_end_that_is_not_a_token_id_is_refused_with_file_and_value(
    file: str, value: Any, tmp_path: Path
) -> None:
    folder = make_tiny_model("llama", tmp_path)
    tokenizer = load_tokenizer(folder)
    set_json(folder / file, "eos_token_id", value)
    with pytest.raises(ValueError, match=f"eos_token_id in {file} must be") as error:
        eos_token_ids(folder, tokenizer)
    assert repr(value) in str(error.value)


@pytest.mark.slow
def test_the_real_model_ends_a_turn_with_a_token_of_its_own(real_model: Path) -> None:
    tokenizer = load_tokenizer(real_model)
    assert [tokenizer.decode(end) for end in eos_token_ids(real_model, tokenizer)] == [IM_END]


# --- Where the weights lie ----------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5])
def test_shards_hold_the_same_model(count: int, tmp_path: Path) -> None:
    folder, ids = make_tiny_model("qwen3", tmp_path), some_ids(1, 33)
    expected = last_logits(folder, ids)
    shards = split_into_shards(folder, count)
    assert weight_files(folder) == shards
    assert torch.equal(last_logits(folder, ids), expected)


@pytest.mark.parametrize("sharded", [False, True])
def test_a_consolidated_file_beside_the_weights_is_not_loaded(
    sharded: bool, tmp_path: Path
) -> None:
    folder, ids = make_tiny_model("mistral", tmp_path), some_ids(1, 33)
    expected = last_logits(folder, ids)
    if sharded:
        split_into_shards(folder, 2)
    save_file({"tok_embeddings.weight": torch.zeros(3, 3)}, folder / "consolidated.safetensors")
    assert torch.equal(last_logits(folder, ids), expected)


@pytest.mark.parametrize("name", [5, None, ["a"], "../away.safetensors", "/etc/a", "..\\a", ""])
def test_an_index_names_only_files_of_its_folder(name: Any, tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path / "folder")
    (folder / "model.safetensors").rename(tmp_path / "away.safetensors")
    save_file({"a": torch.zeros(1)}, folder / "a.safetensors")
    index = {"weight_map": {"a": "a.safetensors", "b": name}}
    (folder / INDEX).write_text(json.dumps(index), "utf-8")
    with pytest.raises(ValueError) as error:
        weight_files(folder)
    assert str(error.value).startswith(f"weight_map in {folder / INDEX} must name files next to it")
    assert f"there is no {name!r}" in str(error.value)


@pytest.mark.parametrize("shards_left", [0, 1, 2])
def test_a_whole_file_is_read_whatever_an_index_beside_it_says(
    shards_left: int, tmp_path: Path
) -> None:
    """As transformers reads it: an index may stay behind when its shards were merged."""
    folder, ids = make_tiny_model("qwen3", tmp_path), some_ids(1, 33)
    expected, whole = last_logits(folder, ids), (folder / "model.safetensors").read_bytes()
    for shard in split_into_shards(folder, 2)[shards_left:]:
        shard.unlink()
    (folder / "model.safetensors").write_bytes(whole)
    assert weight_files(folder) == [folder / "model.safetensors"]
    assert torch.equal(last_logits(folder, ids), expected)
    assert_same_logits(folder, lengths=(33,))


def test_an_old_shard_that_the_index_does_not_name_is_not_loaded(tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path)
    shards = split_into_shards(folder, 2)
    save_file({"old": torch.zeros(3)}, folder / "model-00009-of-00009.safetensors")
    assert weight_files(folder) == shards
    load(folder)


def test_a_shard_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path)
    gone = split_into_shards(folder, 3)[1]
    gone.unlink()
    with pytest.raises(ValueError, match=f"there is no '{gone.name}': fetch"):
        load(folder)


@pytest.mark.parametrize("change", [0, 1])
def test_a_tensor_in_two_shards_is_named_with_both(change: float, tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path)
    first, second = split_into_shards(folder, 2)
    name = "model.norm.weight"
    tensors = {file: load_file(file) for file in (first, second)}
    owner, other = (first, second) if name in tensors[first] else (second, first)
    other.unlink()
    save_file({**tensors[other], name: tensors[owner][name] + change}, other)
    with pytest.raises(ValueError, match=f"{name} must be in one file only") as error:
        load(folder)
    assert first.name in str(error.value) and second.name in str(error.value)


@pytest.mark.parametrize("stored", [False, True])
def test_a_tied_head_may_be_stored_or_not(stored: bool, tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path)

    def store(tensors: dict[str, torch.Tensor]) -> None:
        assert "lm_head.weight" not in tensors
        if stored:
            tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()

    edit_tensors(folder, store)
    for dtype in (torch.float32, torch.bfloat16):
        assert load(folder, dtype).lm_head.is_tied
    assert_same_logits(folder, lengths=(33,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_tied_head_that_differs_from_the_embedding_is_refused(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    folder = make_tiny_model("llama", tmp_path)

    def store(tensors: dict[str, torch.Tensor]) -> None:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
        tensors["lm_head.weight"][-1, -1] += 1

    edit_tensors(folder, store)
    with pytest.raises(ValueError, match=r"lm_head\.weight must equal .*tie_word_embeddings"):
        load(folder, dtype)


def test_stored_rope_frequencies_are_not_left_over(tmp_path: Path) -> None:
    """Checkpoints of old transformers carry them; they follow from the config."""
    folder = make_tiny_model("llama", tmp_path)

    def store(tensors: dict[str, torch.Tensor]) -> None:
        for layer in range(3):
            tensors[f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"] = torch.ones(8)

    edit_tensors(folder, store)
    load(folder)


# --- What does not fit is named -----------------------------------------------------------------


def test_missing_and_left_over_tensors_are_listed_together(tmp_path: Path) -> None:
    folder = make_tiny_model("llama3", tmp_path)

    def change(tensors: dict[str, torch.Tensor]) -> None:
        del tensors["lm_head.weight"], tensors["model.layers.1.self_attn.k_proj.weight"]
        tensors["model.layers.3.mlp.up_proj.weight"] = torch.zeros(2)
        tensors["vision.weight"] = torch.zeros(2)

    edit_tensors(folder, change)
    with pytest.raises(ValueError) as error:
        load(folder)
    _, _, names = str(error.value).partition("missing: ")
    missing, _, left_over = names.partition("; left over: ")
    assert set(missing.split(", ")) == {"lm_head.weight", "model.layers.1.self_attn.k_proj.weight"}
    assert set(left_over.split(", ")) == {"model.layers.3.mlp.up_proj.weight", "vision.weight"}


def test_a_long_list_of_names_is_cut_and_counted(tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path)
    edit_tensors(folder, lambda tensors: tensors.clear())
    count = 2 + 9 * 3
    with pytest.raises(ValueError, match=rf"and {count - 8} more; left over: none"):
        load(folder)


def test_a_bias_that_the_config_does_not_announce_is_left_over(tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path, attention_bias=True)
    edit_json(folder / "config.json", attention_bias=False)
    with pytest.raises(ValueError, match=r"left over: .*q_proj\.bias"):
        load(folder)


def test_a_tensor_of_another_shape_is_named_in_full(tmp_path: Path) -> None:
    folder = make_tiny_model("llama", tmp_path)
    name = "model.layers.2.self_attn.k_proj.weight"
    edit_tensors(folder, lambda tensors: tensors.update({name: torch.zeros(96, 32)}))
    with pytest.raises(ValueError) as error:
        load(folder)
    assert name in str(error.value)
    assert "shape [32, 96], the checkpoint has [96, 32]" in str(error.value)


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool, torch.complex64, torch.float8_e4m3fn])
def test_weights_of_a_quantised_or_other_type_are_refused(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    folder = make_tiny_model("llama", tmp_path)
    name = "model.layers.2.self_attn.k_proj.weight"
    edit_tensors(folder, lambda tensors: tensors.update({name: tensors[name].to(dtype)}))
    with pytest.raises(ValueError) as error:
        load(folder)
    assert str(error.value) == (
        f"{name} must be float32, bfloat16 or float16, the checkpoint has {dtype}: "
        "choose an unquantised checkpoint"
    )


@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("name", ["model.embed_tokens.weight", "model.layers.1.mlp.up_proj.weight"])
def test_a_weight_that_is_not_finite_is_named(
    name: str, value: float, stored: torch.dtype, tmp_path: Path
) -> None:
    """One number is enough, and the model would say nothing but NaN."""
    folder = make_tiny_model("llama", tmp_path)

    def spoil(tensors: dict[str, torch.Tensor]) -> None:
        tensors[name] = tensors[name].to(stored)
        tensors[name][-1, 5] = value

    edit_tensors(folder, spoil)
    with pytest.raises(ValueError, match=rf"{name} must be finite in torch\.float32, .* {value}"):
        load(folder)


def test_a_weight_too_large_for_the_type_it_is_loaded_in_is_named(tmp_path: Path) -> None:
    folder, name = make_tiny_model("llama", tmp_path), "model.layers.2.self_attn.q_proj.weight"

    def spoil(tensors: dict[str, torch.Tensor]) -> None:
        tensors[name][3, 4] = -70_000.0

    edit_tensors(folder, spoil)
    load(folder)
    load(folder, torch.bfloat16)
    with pytest.raises(ValueError, match=rf"{name} must be finite in torch\.float16, .* -70000 to"):
        load(folder, torch.float16)


@pytest.mark.parametrize("kept", [0, 4, 100, 50_000, -1])
def test_a_truncated_file_is_called_damaged(kept: int, tmp_path: Path) -> None:
    file = make_tiny_model("llama", tmp_path) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged, fetch it again"):
        load(tmp_path)


Spoil = Callable[[Path], object]


def without(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def holding(name: str, content: bytes) -> Spoil:
    return lambda folder: (folder / name).write_bytes(content)


def shards_by(index: bytes) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
        (folder / INDEX).write_bytes(index)

    return spoil


BROKEN: dict[str, tuple[Spoil, str]] = {
    "no config": (without("config.json"), r"must contain config\.json"),
    "no weights": (without("model.safetensors"), r"must contain model\.safetensors or .*index"),
    "broken config": (holding("config.json", b'{"a": '), r"config\.json must be a JSON file"),
    "no object": (holding("config.json", b"[1, 2]"), r"config\.json must contain .* object.*list"),
    "binary config": (holding("config.json", b"\xff\xfe"), r"config\.json must be a JSON file"),
    "deeply nested": (
        holding("config.json", b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
        r"config\.json must be a JSON file",
    ),
    "broken index": (shards_by(b"{"), r"index\.json must be a JSON file"),
    "index without a map": (shards_by(b'{"weight_map": 5}'), r"must name files .* no 5"),
    "empty index": (shards_by(b"{}"), r"must name files .* no None"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_folder_that_is_not_a_model_is_refused_with_the_file_s_name(
    case: str, tmp_path: Path
) -> None:
    spoil, message = BROKEN[case]
    folder = make_tiny_model("llama", tmp_path)
    spoil(folder)
    with pytest.raises(ValueError, match=message):
        load(folder)


def test_an_unknown_folder_and_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_text("")
    for path in (tmp_path / "absent", tmp_path / "model.gguf"):
        with pytest.raises(ValueError, match=f"must be a folder, {path} is not"):
            load(path)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float64, "float32", None])
def test_a_type_that_the_layers_do_not_compute_in_is_refused(dtype: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error:
        load_model(tmp_path, dtype, CPU)
    types = "torch.float32, torch.bfloat16, torch.float16"
    assert str(error.value) == f"dtype must be one of {types}, got {dtype!r}"


@pytest.mark.parametrize("device", ["cuda:99", "gpu", "cpu:x", "meta", None])
def test_a_device_that_is_not_there_is_refused(device: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error:
        load_model(tmp_path, torch.float32, device)
    assert f"such as 'cpu', got {device!r}: " in str(error.value)
    assert "\n" not in str(error.value)


# --- Time and memory ----------------------------------------------------------------------------


def test_a_bar_shows_the_progress_only_when_asked(
    tiny_model: TinyModel, capsys: pytest.CaptureFixture[str]
) -> None:
    load_model(tiny_model("llama"), torch.float32, CPU)
    assert capsys.readouterr().err == ""
    load_model(tiny_model("llama"), torch.float32, CPU, progress=True)
    assert "29/29" in capsys.readouterr().err


def anonymous_bytes() -> int:
    """The process's own memory; pages that are mapped from files are not among it."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("RssAnon:")[2].split()[0])


def memory_of_loading(folder: Path, dtype: torch.dtype) -> dict[str, int]:
    """Load in this process, which has done nothing before: its peak, and what the model needs."""
    baseline, peak, done = anonymous_bytes(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.001):
            peak = max(peak, anonymous_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        model, _ = load_model(folder, dtype, CPU)
    finally:
        done.set()
        watcher.join()
    tensors = tensors_of(model)
    return {
        "peak": max(peak, anonymous_bytes()) - baseline,
        "held": sum(tensor.nbytes for tensor in tensors),
        "largest": max(tensor.nbytes for tensor in tensors),
    }


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells anonymous memory apart")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_loading_takes_the_weights_and_one_tensor_of_memory(
    dtype: torch.dtype, real_model: Path
) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        memory = process.submit(memory_of_loading, real_model, dtype).result()
    assert memory["held"] >= 134_500_000 * dtype.itemsize  # the measurement sees the whole model
    # Small tensors may lie in memory that the process had freed before.
    assert memory["held"] - 2**20 <= memory["peak"]
    assert memory["peak"] <= memory["held"] + memory["largest"] + 32 * 2**20
