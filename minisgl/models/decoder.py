"""The decoder that all supported architectures share, shaped by `ModelConfig`."""

from __future__ import annotations

import torch

from minisgl.core import get_global_ctx
from minisgl.layers.activation import silu_and_mul
from minisgl.layers.attention import Attention
from minisgl.layers.base import Layer, LayerList
from minisgl.layers.embedding import Embedding, LMHead
from minisgl.layers.linear import Linear, MergedLinear
from minisgl.layers.norm import RMSNorm
from minisgl.layers.rotary import Rotary, Rotation
from minisgl.models.config import ModelConfig


class MLP(Layer):
    """The gated feed-forward block (SwiGLU)."""

    def __init__(self, config: ModelConfig) -> None:
        size = config.intermediate_size
        members = {"gate_proj": size, "up_proj": size}
        self.gate_up_proj = MergedLinear(config.hidden_size, members, config.mlp_bias)
        self.down_proj = Linear(size, config.hidden_size, config.mlp_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[num_tokens, hidden_size]` to the same shape."""
        gate, up = self.gate_up_proj.forward_split(x)
        return self.down_proj.forward(silu_and_mul(gate, up))


class DecoderLayer(Layer):
    """Attention, then MLP; each has a norm in front and adds its output to the residual stream."""

    def __init__(self, config: ModelConfig, layer_id: int) -> None:
        self.self_attn = Attention(
            config.hidden_size,
            config.num_qo_heads,
            config.num_kv_heads,
            config.head_dim,
            qkv_bias=config.qkv_bias,
            o_bias=config.o_bias,
            layer_id=layer_id,
            qk_norm_eps=config.rms_norm_eps if config.qk_norm else None,
        )
        self.mlp = MLP(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor, rotation: Rotation
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Run one layer: `x` is the output of the previous block, not yet added to `residual`.

        Both are `[num_tokens, hidden_size]`; the results have the same shapes and meanings.
        """
        x, residual = self.input_layernorm.forward_add(x, residual)
        x = self.self_attn.forward(x, rotation)
        x, residual = self.post_attention_layernorm.forward_add(x, residual)
        return self.mlp.forward(x), residual


class Decoder(Layer):
    """Token ids to the last hidden states."""

    def __init__(self, config: ModelConfig) -> None:
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = LayerList([DecoderLayer(config, i) for i in range(config.num_layers)])
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.rotary = Rotary(config.rotary)

    def forward(self, input_ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """`[num_tokens]` ids and positions to `[num_tokens, hidden_size]`."""
        rotation = self.rotary.at(positions)
        x = self.embed_tokens.forward(input_ids)
        residual = torch.zeros_like(x)  # the first layer has nothing before it but `x`
        for layer in self.layers:
            x, residual = layer.forward(x, residual, rotation)
        return self.norm.forward_add(x, residual)[0]


class CausalLM(Layer):
    """A decoder with its head: the current batch to logits."""

    def __init__(self, config: ModelConfig) -> None:
        self.model = Decoder(config)
        tied_to = self.model.embed_tokens if config.tie_word_embeddings else None
        self.lm_head = LMHead(config.vocab_size, config.hidden_size, tied_to)

    def forward(self) -> torch.Tensor:
        """Logits `[batch_size, vocab_size]` of the batch that the global Context holds."""
        batch = get_global_ctx().batch
        return self.lm_head.forward(self.model.forward(batch.input_ids, batch.positions))
