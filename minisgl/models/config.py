"""What a checkpoint folder says about its model, read once and refused where we would err."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoConfig

from minisgl.layers.rotary import Llama3Scaling, RotaryConfig
from minisgl.models.register import ARCHITECTURES


@dataclass(frozen=True)
class ModelConfig:
    """Everything the decoder needs to be built. `eos_token_ids` is sorted."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rotary: RotaryConfig
    qkv_bias: bool
    o_bias: bool
    mlp_bias: bool
    qk_norm: bool
    tie_word_embeddings: bool
    max_position_embeddings: int
    eos_token_ids: tuple[int, ...]

    @classmethod
    def from_folder(cls, folder: Path) -> ModelConfig:
        """Read `config.json`, `generation_config.json` and the tokenizer's files.

        Raises:
            ValueError: the folder holds no readable config, or its model is not one that the
                decoder computes right; the message names the feature.
        """
        if not (folder / "config.json").is_file():
            raise ValueError(f"a model folder must hold config.json, {folder} has none")
        raw = read_json(folder / "config.json")
        names = raw.get("architectures")
        name = names[0] if isinstance(names, list) and names else names
        if not isinstance(name, str) or name not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            raise ValueError(
                f"the architecture must be one of {known}, {folder} has {name or 'none'}: "
                "choose another model"
            )
        architecture = ARCHITECTURES[name]
        eos_token_ids = _eos_token_ids(folder, raw)
        try:
            hf = AutoConfig.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # its checks raise errors of many kinds
            reason = " ".join(str(error).split())  # on one line
            raise ValueError(f"{folder / 'config.json'} is no valid config: {reason}") from error
        model_type = name.removesuffix("ForCausalLM").lower()
        _require(hf.model_type == model_type, f"model_type must be {model_type}", hf.model_type)
        _refuse_unsupported(hf)
        bias = getattr(hf, "attention_bias", False)
        return cls(
            vocab_size=_positive(hf, "vocab_size"),
            hidden_size=_positive(hf, "hidden_size"),
            intermediate_size=_positive(hf, "intermediate_size"),
            num_layers=_positive(hf, "num_hidden_layers"),
            num_qo_heads=_positive(hf, "num_attention_heads"),
            num_kv_heads=_positive(hf, "num_key_value_heads"),
            head_dim=_head_dim(hf),
            rms_norm_eps=_positive(hf, "rms_norm_eps"),
            rotary=_rotary_config(hf),
            qkv_bias=bias or architecture.qkv_bias,
            o_bias=bias,
            mlp_bias=getattr(hf, "mlp_bias", False),
            qk_norm=architecture.qk_norm,
            tie_word_embeddings=hf.tie_word_embeddings,
            max_position_embeddings=_positive(hf, "max_position_embeddings"),
            eos_token_ids=eos_token_ids,
        )


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file, empty where there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:  # the last: nested too deeply
        raise ValueError(f"{path} must hold JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object, it holds a {type(content).__name__}")
    return content


def _require(holds: bool, rule: str, value: Any, file: str = "config.json") -> None:
    if not holds:
        raise ValueError(f"{rule}, {file} has {value!r:.200}")


def _positive(source: Any, name: str) -> Any:
    """The number called `name` in a config or a dict; transformers lets 0, -1 and nan pass."""
    value: Any = source.get(name) if isinstance(source, dict) else getattr(source, name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    _require(is_number and 0 < value < math.inf, f"{name} must be positive and finite", value)
    return value


def _head_dim(hf: Any) -> int:
    if getattr(hf, "head_dim", None) is not None:
        return _positive(hf, "head_dim")
    return _positive({"head_dim": hf.hidden_size // hf.num_attention_heads}, "head_dim")


def _rotary_config(hf: Any) -> RotaryConfig:
    rope = hf.rope_parameters
    llama3 = None
    if rope["rope_type"] == "llama3":
        llama3 = Llama3Scaling(
            factor=_positive(rope, "factor"),
            low_freq_factor=_positive(rope, "low_freq_factor"),
            high_freq_factor=_positive(rope, "high_freq_factor"),
            original_max_position_embeddings=_positive(rope, "original_max_position_embeddings"),
        )
    return RotaryConfig(_head_dim(hf), _positive(rope, "rope_theta"), rope["rope_type"], llama3)


def _refuse_unsupported(hf: Any) -> None:
    """Raise ValueError for what the decoder would silently compute wrongly."""
    window = getattr(hf, "sliding_window", None)
    quantization = getattr(hf, "quantization_config", None)
    rotated = hf.rope_parameters.get("partial_rotary_factor", 1)
    rules = (
        (hf.hidden_act == "silu", "hidden_act must be silu", hf.hidden_act),
        (quantization is None, "quantization_config must be absent", quantization),
        (rotated == 1, "partial_rotary_factor must be 1", rotated),
        (
            window is None or window >= hf.max_position_embeddings,
            "sliding_window must be absent or cover the whole context",
            window,
        ),
    )
    for holds, rule, value in rules:
        if not holds:
            raise ValueError(
                f"{rule}, this model has {value} and would be computed wrongly: "
                "choose another model"
            )


def _eos_token_ids(folder: Path, config: dict[str, Any]) -> tuple[int, ...]:
    """The union of what the config, the generation config and the tokenizer call the end.

    They disagree in real checkpoints: a chat model often ends its turn with a token that only
    one of the three names, and would run on to its length limit.
    """
    found: set[int] = set()
    generation = read_json(folder / "generation_config.json")
    for file, source in (("config.json", config), ("generation_config.json", generation)):
        ids = source.get("eos_token_id")
        ids = ids if isinstance(ids, list) else [] if ids is None else [ids]
        _require(all(type(i) is int for i in ids), "eos_token_id must be one id or some", ids, file)
        found.update(ids)
    file = "tokenizer_config.json"
    token = read_json(folder / file).get("eos_token")
    text = token.get("content") if isinstance(token, dict) else token
    _require(token is None or isinstance(text, str), "eos_token must be a text", token, file)
    file, rule = "tokenizer.json", "added_tokens must be a list of {content: text, id: integer}"
    tokens = read_json(folder / file).get("added_tokens", [])
    _require(isinstance(tokens, list), rule, tokens, file)
    for added in tokens:
        entry = added if isinstance(added, dict) else {}
        is_token = isinstance(entry.get("content"), str) and type(entry.get("id")) is int
        _require(is_token, rule, added, file)
        if entry["content"] == text:
            found.add(entry["id"])
    return tuple(sorted(found))
