"""The architectures that the decoder computes, and in what they differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """What an architecture fixes in its code, and so leaves out of its `config.json`."""

    qkv_bias: bool = False
    qk_norm: bool = False
    bias_flags: tuple[str, ...] = ()  # the entries of `config.json` that it obeys


ARCHITECTURES = {
    "LlamaForCausalLM": Architecture(bias_flags=("attention_bias", "mlp_bias")),
    "MistralForCausalLM": Architecture(),
    "Qwen2ForCausalLM": Architecture(qkv_bias=True),
    "Qwen3ForCausalLM": Architecture(qk_norm=True, bias_flags=("attention_bias",)),
}
