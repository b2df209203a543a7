"""What a checkpoint folder says about its model, read once; what we would get wrong is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from transformers import AutoConfig

from minisgl.layers.rotary import Llama3Scaling, RotaryConfig
from minisgl.models.register import ARCHITECTURES
from minisgl.utils.check import check_number

_SIZES = ("vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings")
_COUNTS = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads")


@dataclass(frozen=True)
class ModelConfig:
    """Everything needed to build the decoder."""

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

    @classmethod
    def from_folder(cls, folder: Path) -> ModelConfig:
        """Read `config.json`. Code that the folder brings along is never run.

        Raises:
            ValueError: the file is missing or invalid, or the decoder cannot compute its model
                correctly; the message names the entry and its value.
        """
        path = folder / "config.json"
        if not path.is_file():
            raise ValueError(f"a model folder must contain config.json, {folder} does not")
        raw = read_json(path)
        names, model_type = raw.get("architectures"), raw.get("model_type")
        name: Any = names[0] if isinstance(names, list) and names else names
        known = list(ARCHITECTURES)
        _require(name in known, f"architectures must be one of {', '.join(known)}", name)
        expected = name.removesuffix("ForCausalLM").lower()
        _require(model_type == expected, f"model_type must be {expected} for {name}", model_type)
        for entry in (*_SIZES, *_COUNTS):
            if raw.get(entry) is not None:  # null or absent: transformers has a default
                high = 2**31 - 1 if entry in _SIZES else 2**16
                check_number(f"{entry} in config.json", raw[entry], low=1, high=high, whole=True)
        try:
            hf = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        except Exception as error:  # its checks raise errors of many kinds
            reason = " ".join(str(error).split())  # on one line
            raise ValueError(f"transformers rejects {path}: {reason}") from error
        head_dim = getattr(hf, "head_dim", None)
        head_dim = hf.hidden_size // hf.num_attention_heads if head_dim is None else head_dim
        check_number("head_dim in config.json", head_dim, low=1, high=2**16, whole=True)
        check_number("rms_norm_eps in config.json", hf.rms_norm_eps, low=0, open_low=True)
        _refuse_unsupported(hf)
        architecture = ARCHITECTURES[name]
        flags = {flag: getattr(hf, flag, False) for flag in architecture.bias_flags}
        bias = flags.get("attention_bias", False)
        return cls(
            vocab_size=hf.vocab_size,
            hidden_size=hf.hidden_size,
            intermediate_size=hf.intermediate_size,
            num_layers=hf.num_hidden_layers,
            num_qo_heads=hf.num_attention_heads,
            num_kv_heads=hf.num_key_value_heads,
            head_dim=head_dim,
            rms_norm_eps=hf.rms_norm_eps,
            rotary=_rotary_config(hf.rope_parameters, head_dim),
            qkv_bias=bias or architecture.qkv_bias,
            o_bias=bias,
            mlp_bias=flags.get("mlp_bias", False),
            qk_norm=architecture.qk_norm,
            tie_word_embeddings=hf.tie_word_embeddings,
            max_position_embeddings=hf.max_position_embeddings,
        )


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:  # the last: nested too deeply
        raise ValueError(f"{path} must be a JSON file: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must contain a JSON object, got a {type(content).__name__}")
    return content


def _require(holds: bool, rule: str, value: Any) -> None:
    if not holds:
        raise ValueError(f"{rule}, config.json has {value!r:.200}: choose another model")


def _rotary_config(rope: Any, head_dim: int) -> RotaryConfig:
    kind, llama3 = str(rope.get("rope_type")), None
    if kind == "llama3":
        llama3 = Llama3Scaling(
            **{field.name: rope.get(field.name) for field in fields(Llama3Scaling)}
        )
    return RotaryConfig(head_dim, rope.get("rope_theta"), kind, llama3)


def _refuse_unsupported(hf: Any) -> None:
    """Refuse what the decoder would compute wrongly without noticing, or not at all."""
    _require(hf.hidden_act in ("silu", "swish"), "hidden_act must be silu (swish)", hf.hidden_act)
    quantization = getattr(hf, "quantization_config", None)
    _require(quantization is None, "quantization_config must be absent", quantization)
    rotated = hf.rope_parameters.get("partial_rotary_factor", 1)
    _require(rotated == 1, "partial_rotary_factor must be 1", rotated)

    heads, kv_heads = hf.num_attention_heads, hf.num_key_value_heads
    rule = f"num_attention_heads must be a multiple of num_key_value_heads ({kv_heads})"
    _require(heads % kv_heads == 0, rule, heads)

    # Without layer_types, a window is meant for every layer.
    kinds = set(getattr(hf, "layer_types", None) or ["sliding_attention"])
    rule = "layer_types must be full_attention or sliding_attention"
    _require(kinds <= {"full_attention", "sliding_attention"}, rule, sorted(kinds))
    window, context = getattr(hf, "sliding_window", None), hf.max_position_embeddings
    is_full = window is None or (isinstance(window, int) and window >= context)
    rule = f"sliding_window must be absent or cover the whole context ({context})"
    _require(is_full or "sliding_attention" not in kinds, rule, window)
