"""Tiny random models of every architecture, as Hugging Face folders.

Every law of the book ("paging changes no token", "chunked prefill equals whole prefill") has to
hold for every architecture, and a test can afford that only if a model costs milliseconds.
`make_tiny_model` writes what the hub would hold: `config.json` as that family's own looks,
`model.safetensors`, a tokenizer and its chat template.

The weights are random but not careless. Attention has a peaked softmax, so that a wrong mask, a
wrong position or a wrong page changes the logits; norm weights and biases are never trivial; the
logits are spread, so that two tokens practically never tie and greedy output does not depend on
the order of a summation.
"""

from __future__ import annotations

import functools
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HIDDEN, HEADS, KV_HEADS, LAYERS, INTERMEDIATE = 64, 4, 2, 3, 96
MAX_POSITIONS = 1024

BOS, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL_TOKENS = (BOS, IM_START, IM_END)  # ids 0, 1 and 2

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

# The merges are learned from these lines: enough for tokens of several letters, and for some that
# hold a part or all of a Chinese character.
CORPUS = (
    "The engine reads a prompt, computes keys and values, and stores them in pages.",
    "A request waits, is scheduled, runs, and finishes; then its pages are free again.",
    "The prefix of the prompt is shared, so the engine does not compute it again.",
    "def forward(self, batch):\n    return self.model(batch.input_ids, batch.positions)",
    "请求等待,然后被调度,运行,结束。请求的前缀是共享的,引擎不再计算。",
)

# transformers builds a Qwen2 tokenizer from vocabulary and merges with this pattern, whatever
# pre-tokenizer tokenizer.json names.
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_SHARED: dict[str, Any] = {
    "bos_token_id": 0,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "initializer_range": 0.02,
    "intermediate_size": INTERMEDIATE,
    "max_position_embeddings": MAX_POSITIONS,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": KV_HEADS,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "use_cache": True,
}

_CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "mlp_bias": False,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "hidden_size": 96,
        "rms_norm_eps": 1e-5,
        "rope_scaling": None,
        "rope_theta": 100000.0,
        "tie_word_embeddings": True,
    },
    "llama3": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "mlp_bias": False,
        "eos_token_id": [0, 2],  # Llama 3 lists several; both must end a request
        "head_dim": 16,
        "rms_norm_eps": 1e-5,
        # So short an original context that frequencies are kept, blended and divided.
        "rope_scaling": {
            "factor": 8.0,
            "high_freq_factor": 4.0,
            "low_freq_factor": 1.0,
            "original_max_position_embeddings": 32,
            "rope_type": "llama3",
        },
    },
    "mistral": {
        "architectures": ["MistralForCausalLM"],
        "model_type": "mistral",
        "head_dim": 16,
        "rms_norm_eps": 1e-5,
        "sliding_window": None,
    },
    "qwen2": {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "max_window_layers": LAYERS,
        "sliding_window": MAX_POSITIONS,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
    },
    "qwen3": {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "attention_bias": False,
        "head_dim": 32,  # not hidden_size / num_attention_heads
        "max_window_layers": LAYERS,
        "rope_scaling": None,
        "sliding_window": None,
        "use_sliding_window": False,
    },
}

ARCHITECTURES = tuple(_CONFIGS)


def make_tiny_model(arch: str, folder: str | Path, **overrides: Any) -> Path:
    """Write a complete tiny model of `arch` into `folder` (made if missing) and return the folder.

    `overrides` replace entries of config.json, e.g. `num_hidden_layers=2`; the tensors follow the
    config. The same arguments always give the same bytes. Raises ValueError for an architecture
    that is not in `ARCHITECTURES`.
    """
    if arch not in _CONFIGS:
        raise ValueError(f"unknown architecture {arch!r}: choose one of {', '.join(ARCHITECTURES)}")
    tokenizer = _tokenizer_json(qwen=arch.startswith("qwen"))
    vocab_size = len(json.loads(tokenizer)["model"]["vocab"])
    config = {**_SHARED, "vocab_size": vocab_size, **_CONFIGS[arch], **overrides}
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tiny_weights(config), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    ids = {key: config[key] for key in ("bos_token_id", "eos_token_id")}
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", {**ids, "pad_token_id": 2})
    _write_json(folder / "tokenizer_config.json", _tokenizer_config())
    return folder


def tiny_weights(config: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the fp32 tensors of `config` under their hub names; linear weights are `[out, in]`.

    A linear layer with standard deviation `gain / sqrt(in)` turns normed input (rms about 1) into
    output of rms `gain`. q and k get a gain that makes attention scores differ by several units
    between positions; o and down get one that outweighs the embedding, or a tied head would
    repeat the last token. The logits' standard deviation is about 16: the larger, the rarer a
    close call between the two best tokens.
    """
    rng = np.random.default_rng(zlib.crc32(config["model_type"].encode()))
    hidden, inter = config["hidden_size"], config["intermediate_size"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim") or hidden // heads
    obeyed = {"llama": ("attention_bias", "mlp_bias"), "qwen3": ("attention_bias",)}
    flags = {flag for flag in obeyed.get(config["model_type"], ()) if config.get(flag)}
    has_qkv_bias = config["model_type"] == "qwen2" or "attention_bias" in flags
    tensors: dict[str, np.ndarray] = {}

    def normal(name: str, shape: tuple[int, ...], std: float, mean: float = 0.0) -> None:
        values = rng.standard_normal(shape, dtype=np.float32)
        tensors[name] = (mean + std * values).astype(np.float32)

    def linear(name: str, out: int, in_: int, gain: float, bias: bool = False) -> None:
        normal(f"{name}.weight", (out, in_), gain / in_**0.5)
        if bias:
            normal(f"{name}.bias", (out,), 0.3)

    normal("model.embed_tokens.weight", (config["vocab_size"], hidden), 2.0)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        attn, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
        mlp_bias, out_bias = "mlp_bias" in flags, "attention_bias" in flags
        normal(f"{prefix}.input_layernorm.weight", (hidden,), 0.2, mean=1.0)
        linear(f"{attn}.q_proj", heads * head_dim, hidden, 1.5, has_qkv_bias)
        linear(f"{attn}.k_proj", kv_heads * head_dim, hidden, 1.5, has_qkv_bias)
        linear(f"{attn}.v_proj", kv_heads * head_dim, hidden, 1.5, has_qkv_bias)
        linear(f"{attn}.o_proj", hidden, heads * head_dim, 6.0, out_bias)
        if config["model_type"] == "qwen3":
            normal(f"{attn}.q_norm.weight", (head_dim,), 0.3, mean=1.5)
            normal(f"{attn}.k_norm.weight", (head_dim,), 0.3, mean=1.5)
        normal(f"{prefix}.post_attention_layernorm.weight", (hidden,), 0.2, mean=1.0)
        linear(f"{mlp}.gate_proj", inter, hidden, 1.5, mlp_bias)
        linear(f"{mlp}.up_proj", inter, hidden, 1.5, mlp_bias)
        linear(f"{mlp}.down_proj", hidden, inter, 6.0, mlp_bias)
    normal("model.norm.weight", (hidden,), 0.2, mean=1.0)
    if not config["tie_word_embeddings"]:
        linear("lm_head", config["vocab_size"], hidden, 16.0)
    return tensors


@functools.cache
def _tokenizer_json(qwen: bool) -> str:
    """Return tokenizer.json: byte-level BPE over all bytes, with merges learned from `CORPUS`."""
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not qwen)
    if qwen:
        tokenizer.normalizer = normalizers.NFC()
        split = pre_tokenizers.Split(Regex(QWEN_PATTERN), behavior="isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    else:
        tokenizer.pre_tokenizer = byte_level
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=384,
        min_frequency=1,
        show_progress=False,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer.to_str(pretty=True)


def _tokenizer_config() -> dict[str, Any]:
    return {
        "add_prefix_space": False,
        "bos_token": BOS,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": IM_END,
        "model_max_length": MAX_POSITIONS,
        "pad_token": IM_END,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": BOS,
    }


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
