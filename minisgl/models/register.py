"""The architectures that the decoder computes, and in what they differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """What an architecture fixes in its code, and so leaves out of its `config.json`."""

    qkv_bias: bool = False
    qk_norm: bool = False


ARCHITECTURES = {
    "LlamaForCausalLM": Architecture(),
    "MistralForCausalLM": Architecture(),
    "Qwen2ForCausalLM": Architecture(qkv_bias=True),
    "Qwen3ForCausalLM": Architecture(qk_norm=True),
}
