"""Rewrite the GGUF file of SmolLM2 as the Hugging Face folder that every chapter reads.

GGUF is the format of llama.cpp: metadata, then tensors, most of them quantized. Here the linear
layers have 4 bits (Q4_1) and the embeddings 8 (Q8_0). Weights are stored in fp32: a Q4_1 weight is
`scale * q + minimum` with fp16 numbers, and bf16 has too few bits to hold that exactly.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, dequantize
from rich.console import Console
from rich.progress import track
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from tools.lang import tr

SPECIAL_TOKEN_TYPE = 3  # "control" in GGUF's token types

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


def convert(gguf: Path, folder: Path) -> None:
    """Write the five files of the Hugging Face folder into `folder`, which must exist."""
    reader = GGUFReader(gguf)
    write_weights(reader, folder / "model.safetensors")
    write_tokenizer(reader, folder / "tokenizer.json")
    write_json(folder / "config.json", model_config(reader))
    write_json(folder / "tokenizer_config.json", tokenizer_config(reader))
    write_json(folder / "generation_config.json", token_ids(reader))


def field(reader: GGUFReader, key: str) -> Any:
    """Return one value of the metadata: a number, a string or a list."""
    return reader.fields[key].contents()


def hub_name(gguf_name: str) -> str:
    """Translate a tensor's name: `blk.3.attn_q.weight` is `model.layers.3.self_attn.q_proj.weight`.

    There is no `output.weight`: the head is tied to the embeddings.
    """
    *prefix, name, suffix = gguf_name.split(".")
    if not prefix:
        return f"{TOP_NAMES[name]}.{suffix}"
    return f"model.layers.{prefix[1]}.{LAYER_NAMES[name]}.{suffix}"


def separate_rotary_halves(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """Undo llama.cpp's order of the rows of q and k, `[num_heads * head_dim, hidden]`.

    Rotary embedding turns pairs of channels. llama.cpp stores the two channels of a pair as
    neighbours; Hugging Face stores all first channels of a head, then all second ones.
    """
    pairs = weight.reshape(num_heads, -1, 2, weight.shape[1])
    return pairs.swapaxes(1, 2).reshape(weight.shape)


def write_weights(reader: GGUFReader, path: Path) -> None:
    """Dequantize to fp32 into a safetensors file, one tensor at a time.

    The format is an 8-byte length, a JSON header with the place of every tensor, and the bytes.
    Writing it ourselves keeps the peak memory at one tensor (113 MB) instead of all of them.
    """
    heads = {"attn_q": field(reader, "llama.attention.head_count")}
    heads["attn_k"] = field(reader, "llama.attention.head_count_kv")
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor in reader.tensors:
        start, end = end, end + 4 * int(tensor.n_elements)
        shape = [int(size) for size in reversed(tensor.shape)]  # GGUF names the fastest axis first
        place = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
        header[hub_name(tensor.name)] = place
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    console = Console(stderr=True)
    what = tr("转换", "converting")
    steps = track(reader.tensors, what, console=console, disable=not console.is_terminal)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in steps:
            weight = dequantize(tensor.data, tensor.tensor_type)
            kind = tensor.name.split(".")[-2]
            if kind in heads:
                weight = separate_rotary_halves(weight, heads[kind])
            file.write(np.ascontiguousarray(weight, dtype="<f4").data)


def write_tokenizer(reader: GGUFReader, path: Path) -> None:
    """Write tokenizer.json: byte-level BPE that never merges digits (`pre = smollm`)."""
    tokens = field(reader, "tokenizer.ggml.tokens")
    types = field(reader, "tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in field(reader, "tokenizer.ggml.merges")]
    vocab = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [t for t, kind in zip(tokens, types, strict=True) if kind == SPECIAL_TOKEN_TYPE]
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    path.write_text(tokenizer.to_str(pretty=True), encoding="utf-8")


def token_ids(reader: GGUFReader) -> dict[str, int]:
    """Return the ids that begin, end and pad a text; eos ends a turn of the chat (`<|im_end|>`)."""
    names = {"bos": "bos", "eos": "eos", "pad": "padding"}
    return {
        f"{ours}_token_id": field(reader, f"tokenizer.ggml.{theirs}_token_id")
        for ours, theirs in names.items()
    }


def model_config(reader: GGUFReader) -> dict[str, Any]:
    """Return config.json as the hub has it for this model."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        **token_ids(reader),
        "hidden_act": "silu",
        "hidden_size": field(reader, "llama.embedding_length"),
        "intermediate_size": field(reader, "llama.feed_forward_length"),
        "max_position_embeddings": field(reader, "llama.context_length"),
        "mlp_bias": False,
        "num_attention_heads": field(reader, "llama.attention.head_count"),
        "num_hidden_layers": field(reader, "llama.block_count"),
        "num_key_value_heads": field(reader, "llama.attention.head_count_kv"),
        # GGUF has fp32 here; the digits it stands for are 1e-05.
        "rms_norm_eps": float(f"{field(reader, 'llama.attention.layer_norm_rms_epsilon'):.6g}"),
        "rope_scaling": None,
        "rope_theta": field(reader, "llama.rope.freq_base"),
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
        "vocab_size": field(reader, "llama.vocab_size"),
    }


def tokenizer_config(reader: GGUFReader) -> dict[str, Any]:
    """Return tokenizer_config.json. Its class is the one that takes tokenizer.json as it is."""
    tokens = field(reader, "tokenizer.ggml.tokens")
    names = {key.removesuffix("_id"): tokens[index] for key, index in token_ids(reader).items()}
    return {
        "add_prefix_space": False,
        **names,
        "unk_token": tokens[field(reader, "tokenizer.ggml.unknown_token_id")],
        "chat_template": field(reader, "tokenizer.chat_template"),
        "clean_up_tokenization_spaces": False,
        "model_max_length": field(reader, "llama.context_length"),
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write readable JSON."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
