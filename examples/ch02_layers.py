"""Chapter 2: each operator of a transformer beside transformers' own, with the same weights."""

import _step

import torch
from torch.nn import functional
from transformers import LlamaConfig, Qwen3Config
from transformers.models.llama import modeling_llama as llama
from transformers.models.qwen3 import modeling_qwen3 as qwen3

from minisgl.core import Batch, Context, Req, SamplingParams, set_global_ctx
from minisgl.layers.activation import silu_and_mul
from minisgl.layers.attention import Attention
from minisgl.layers.base import Layer
from minisgl.layers.embedding import Embedding, LMHead
from minisgl.layers.linear import Linear
from minisgl.layers.norm import RMSNorm
from minisgl.layers.rotary import Llama3Scaling, Rotary, RotaryConfig

N, VOCAB, HIDDEN, HEADS, KV_HEADS, HEAD_DIM = 9, 100, 48, 6, 2, 16
SHAPE = {"hidden_size": HIDDEN, "head_dim": HEAD_DIM, "attn_implementation": "eager"}
SHAPE |= {"num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 64}

torch.manual_seed(0)
torch.set_num_threads(1)
torch.set_grad_enabled(False)


def filled(ours: Layer, theirs: torch.nn.Module) -> Layer:
    """Random weights for theirs, of which ours finds each by the path of its attributes."""
    ours.materialize(torch.float32, torch.device("cpu"))
    checkpoint = theirs.state_dict()
    for name, layer, part in ours.slots():
        layer.load(part, checkpoint[name].normal_(std=0.3))
    return ours


def show(operator: str, ours: torch.Tensor, theirs: torch.Tensor) -> None:
    close = (ours - theirs).abs().max().item() <= 1e-5
    print(f"{operator:<20}{list(ours.shape)!s:<14}max error ≤ 1e-5: {close}")


print(_step.tr("每个算子与 transformers 对照：", "each operator beside transformers':"))
x, residual, ids = torch.randn(N, HIDDEN), torch.randn(N, HIDDEN), torch.randint(VOCAB, (N,))
embedding = filled(Embedding(VOCAB, HIDDEN), theirs := torch.nn.Embedding(VOCAB, HIDDEN))
show("embedding", embedding.forward(ids), theirs(ids))
linear = filled(Linear(HIDDEN, 7, bias=True), theirs := torch.nn.Linear(HIDDEN, 7))
show("linear", linear.forward(x), theirs(x))
norm = filled(RMSNorm(HIDDEN, eps=1e-6), theirs := llama.LlamaRMSNorm(HIDDEN))
show("RMSNorm", norm.forward(x), theirs(x))
show("add and RMSNorm", norm.forward_add(x, residual.clone())[0], theirs(x + residual))
show("SwiGLU", silu_and_mul(x, residual), functional.silu(x) * residual)

q, positions = torch.randn(N, HEADS, HEAD_DIM), torch.arange(N)
for kind, scaling in (("llama3", LLAMA3), ("default", {})):
    config = RotaryConfig(HEAD_DIM, 1e4, kind, Llama3Scaling(**scaling) if scaling else None)
    rotation = Rotary(config).at(positions)
    rope = {"rope_type": kind, "rope_theta": 1e4, **scaling}
    theirs = llama.LlamaRotaryEmbedding(LlamaConfig(**SHAPE, rope_parameters=rope))
    cos, sin = theirs(q, positions[None])
    turned, _ = llama.apply_rotary_pos_emb(q, q, cos[0], sin[0], unsqueeze_dim=1)
    show(f"RoPE, {kind}", rotation.apply(q), turned)

mask = torch.full((N, N), -torch.inf).triu(1)
for kind, theirs, qk_norm_eps in (
    ("QK norm", qwen3.Qwen3Attention(Qwen3Config(**SHAPE), layer_idx=0), 1e-6),
    ("plain", llama.LlamaAttention(LlamaConfig(**SHAPE), layer_idx=0), None),
):
    options = {"qkv_bias": False, "o_bias": False, "qk_norm_eps": qk_norm_eps}
    attention = filled(Attention(HIDDEN, HEADS, KV_HEADS, HEAD_DIM, **options), theirs)
    expected, _ = theirs(x[None], position_embeddings=(cos, sin), attention_mask=mask)
    show(f"attention, {kind}", before := attention.forward(x, rotation), expected[0])

batch = Batch([Req(ids[:n], 0, 0, 1, 0, SamplingParams(), None) for n in (5, 1, 3)], "prefill")
set_global_ctx(ctx := Context(page_size=1))
with ctx.forward_batch(batch):  # nine rows of three requests; the last of each is scored
    logits = LMHead(VOCAB, HIDDEN, tied_to=embedding).forward(x)
show("head, tied", logits, x[[4, 5, 8]] @ embedding.weight.T)

print(_step.tr("\n属性路径就是权重的名字：", "\nthe path of attributes is the name of the weight:"))
for name, layer, part in attention.slots("model.layers.0.self_attn."):
    print(f"{name:<40}{list(layer.parts()[part])!s:<10}→ {type(layer).__name__}")

x[5] += 1
rows = (attention.forward(x, rotation) != before).any(dim=1).nonzero().flatten().tolist()
print(_step.tr("\n改动第 5 个 token，结果变化的行：", "\ntoken 5 changes, and with it rows"), rows)
