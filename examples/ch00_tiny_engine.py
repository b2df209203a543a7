"""Chapter 0: a language model in one file, from a folder of weights to streamed text.

Its functions come back as parts of an engine. Until then, each token makes the next one dearer."""

from _step import measured, model_dir, tr

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace as Model  # holds config.json, the tokenizer and the weights

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream
from torch.nn.functional import linear, silu

PROMPTS = ["What is the capital of France?", "Name three colors.", "What is an inference engine?"]
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
CHAT = "<|im_start|>system\n{}<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
LAYER = """input_layernorm self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj
    post_attention_layernorm mlp.gate_proj mlp.up_proj mlp.down_proj"""
spent: dict[str, float] = defaultdict(float)  # seconds by the name of the function


def load_model(folder: Path) -> Model:
    """Read the Hugging Face folder of a plain Llama, or exit with one line that says why not."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
        weights = {k: w.float() for k, w in load_file(folder / "model.safetensors").items()}
        plain = config["model_type"] == "llama" and rope.get("rope_type", "default") == "default"
        if not plain or any(name.endswith("bias") for name in weights):
            raise ValueError("only the plain Llama architecture is known here")
        model = Model(**{"rope_theta": 10000.0} | config | rope, layers=[])
        for i in range(model.num_hidden_layers):
            names = [f"model.layers.{i}.{name}.weight" for name in LAYER.split()]
            model.layers.append(Model(**{name.split(".")[-2]: weights[name] for name in names}))
        model.embedding = weights["model.embed_tokens.weight"]  # [vocab, hidden]
        model.norm = weights["model.norm.weight"]
        model.head = weights.get("lm_head.weight", model.embedding)  # [vocab, hidden], often tied
        model.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # tokenizers raises nothing narrower
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise SystemExit(tr(f"无法加载 {folder}：{why}", f"cannot load {folder}: {why}")) from None
    return model


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotary(x: torch.Tensor, theta: float) -> torch.Tensor:
    """Turn pairs of numbers of each head, x [heads, n, head_dim], by angles that tell positions."""
    half = x.shape[-1] // 2
    angles = torch.outer(torch.arange(x.shape[1]), theta ** (-torch.arange(half) / half))
    (a, b), cos, sin = x.chunk(2, dim=-1), angles.cos(), angles.sin()  # cos, sin: [n, half]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def attention(model: Model, w: Model, x: torch.Tensor) -> torch.Tensor:
    """Let each token look at itself and at the tokens before it; x is [n, hidden]."""
    n, head_dim = len(x), len(w.q_proj) // model.num_attention_heads
    qkv = (linear(x, weight) for weight in (w.q_proj, w.k_proj, w.v_proj))
    q, k, v = (part.view(n, -1, head_dim).transpose(0, 1) for part in qkv)  # [heads, n, head_dim]
    q, k = rotary(q, model.rope_theta), rotary(k, model.rope_theta)
    k, v = (part.repeat_interleave(len(q) // len(part), dim=0) for part in (k, v))  # shared heads
    scores = q @ k.transpose(1, 2) / head_dim**0.5 + torch.full((n, n), -torch.inf).triu(1)
    return linear((scores.softmax(-1) @ v).transpose(0, 1).reshape(n, -1), w.o_proj)


def mlp(w: Model, x: torch.Tensor) -> torch.Tensor:
    return linear(silu(linear(x, w.gate_proj)) * linear(x, w.up_proj), w.down_proj)


def timed(function: Callable[..., torch.Tensor], *args: object) -> torch.Tensor:
    start = time.perf_counter()
    result = function(*args)
    spent[function.__name__] += time.perf_counter() - start
    return result


def forward(model: Model, ids: list[int]) -> torch.Tensor:
    """Return the logits [vocab] of the token that follows `ids`."""
    x, eps = model.embedding[ids], model.rms_norm_eps  # x: [n, hidden]
    for w in model.layers:
        x = x + timed(attention, model, w, rms_norm(x, w.input_layernorm, eps))
        x = x + timed(mlp, w, rms_norm(x, w.post_attention_layernorm, eps))
    return timed(linear, rms_norm(x[-1], model.norm, eps), model.head)


def generate(model: Model, prompt: str, max_tokens: int) -> Iterator[int]:
    """Yield greedy tokens, EOS included; each is computed from the whole text before it."""
    ids, eos = model.tokenizer.encode(prompt).ids, model.eos_token_id
    for _ in range(max_tokens):
        ids.append(int(forward(model, ids).argmax()))
        yield ids[-1]
        if ids[-1] in (eos if isinstance(eos, list) else [eos]):
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="a Hugging Face folder")
    parser.add_argument("--prompt", nargs="+", default=PROMPTS, metavar="TEXT")
    args = parser.parse_args()
    torch.set_num_threads(2)
    model = load_model(args.model or model_dir())
    for prompt in args.prompt:
        print(f"> {prompt}")
        text, count, start = DecodeStream(skip_special_tokens=True), 0, time.perf_counter()
        for token in generate(model, CHAT.format(SYSTEM, prompt), max_tokens=32):
            print(text.step(model.tokenizer, token) or "", end="", flush=True)
            count += 1
        print(f"\n[{count} tokens, {measured(count / (time.perf_counter() - start))} tokens/s]\n")
    print(tr("长度  ms/token  注意力%   MLP%  输出头%", "length  ms/token  att.%  MLP%  head%"))
    for n in (16, 64, 256, 1024):
        forward(model, [0] * n)  # the first pass of a length also pays for its memory
        spent.clear()
        timed(forward, model, [0] * n)
        total, *parts = (spent[name] for name in ("forward", "attention", "mlp", "linear"))
        shares = (f"{measured(100 * part / total, '.0f'):>7}" for part in parts)
        print(f"{n:>6}{measured(1000 * total):>10}", *shares)


if __name__ == "__main__":
    main()
