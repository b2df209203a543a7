"""Recorders of chapters 1 to 4."""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))  # behind the tree of the step

from tools.figlib.runs.listening import Trace, listen, run_example


def ready() -> None:
    """The processes of the steps need no setting up."""


def ch01_req(_: None) -> Trace:
    """The lengths of the example's request: admitted, and after each pass."""
    from minisgl.core import Req

    stages: list[dict[str, int]] = []

    def note(_: None, req: Req, *__: object) -> None:
        stages.append(
            {
                "cached_len": req.cached_len,
                "device_len": req.device_len,
                "max_device_len": req.max_device_len,
                "known": len(req.input_ids),
            }
        )

    listen(Req, "__post_init__", note)
    listen(Req, "append_host", note)
    run_example("ch01_req")
    return {"stages": stages}


def ch02_layers(_: None) -> Trace:
    """Which rows of attention a changed token reaches; RoPE's angles, and a product of all pairs.

    One query and one key, each turned to every position: what is left is what RoPE adds.
    """
    import torch

    names = run_example("ch02_layers")
    from minisgl.layers.rotary import Rotary, RotaryConfig

    dim, positions = 8, list(range(7))
    rotation = Rotary(RotaryConfig(dim, 1e4)).at(torch.tensor(positions))
    angles = torch.atan2(rotation.sin, rotation.cos)[:, 0]  # [position, pair]
    query, key = torch.randn(2, 1, 1, dim, generator=torch.Generator().manual_seed(3))
    turned = [rotation.apply(one.repeat(len(positions), 1, 1))[:, 0] for one in (query, key)]
    products = turned[0] @ turned[1].T  # [position of the query, position of the key]
    return {
        "tokens": names["N"],
        "changed": 5,
        "rows": names["rows"],
        "head_dim": dim,
        "positions": positions,
        "angles": [[round(a, 4) for a in row] for row in angles.T.tolist()],
        "products": [[round(product, 3) for product in row] for row in products.tolist()],
    }


def ch03_models(_: None) -> Trace:
    """What the real model's folder says, and the place of each weight of one layer."""
    import _step

    import torch

    from minisgl.layers.linear import MergedLinear
    from minisgl.models.weight import load_model

    model, config = load_model(_step.model_dir(), torch.float32, torch.device("cpu"))
    places = {id(layer): path for path, layer in _paths(model)}
    weights = []
    for name, layer, part in model.slots():
        if name.startswith("model.layers.") and not name.startswith("model.layers.0."):
            continue
        member, _dot, attribute = part.rpartition(".")
        weights.append(
            {
                "name": name,
                "shape": list(layer.parts()[part]),
                "place": f"{places[id(layer)]}.{attribute}",
                "rows": _rows(layer, member) if isinstance(layer, MergedLinear) else None,
            }
        )
    keys = ["num_layers", "num_qo_heads", "num_kv_heads", "head_dim", "hidden_size"]
    keys += ["intermediate_size", "vocab_size", "tie_word_embeddings"]
    config_values = {key: getattr(config, key) for key in keys}
    return {"config": config_values, "count": len([*model.slots()]), "weights": weights}


def _rows(layer: Any, member: str) -> list[int]:
    """First row of a member of a merged matrix, and the row after its last."""
    names, sizes = list(layer._members), list(layer._members.values())
    start = sum(sizes[: names.index(member)])
    return [start, start + layer._members[member]]


def _paths(layer: Any, prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, child in layer.children():
        path = f"{prefix}{name}"
        found += [(path, child), *_paths(child, f"{path}.")]
    return found


def ch04_runner(_: None) -> Trace:
    """The example's first prompt up to its first tokens, and a distribution that is cut."""
    import _step

    import torch

    import minisgl.engine.engine as engine_module
    from minisgl import LLM, SamplingParams

    torch.set_num_threads(1)
    seen: list[torch.Tensor] = []
    original = engine_module.sample

    def sample(logits: torch.Tensor, *args: Any) -> torch.Tensor:
        seen.append(logits[0].clone())
        return original(logits, *args)

    setattr(engine_module, "sample", sample)  # noqa: B010  (an assignment would need its type)
    with LLM(_step.model_dir()) as llm:
        prompt = "The capital of France is"
        ids = llm.tokenizer(prompt)["input_ids"]
        greedy = llm.generate(prompt, SamplingParams(max_tokens=2))[0].token_ids
        first = seen[0]
        seen.clear()
        params = SamplingParams(temperature=0.8, top_p=0.9, max_tokens=1, seed=1)
        story = "The color of the sky is"
        drawn = llm.generate(story, params)[0].token_ids[0]
        probs = (seen[0] / params.temperature).softmax(0).sort(descending=True)
        reached = probs.values.cumsum(0)
        count = int((reached < params.top_p).sum()) + 1

        def piece(token: int) -> str:
            return llm.tokenizer.decode(token)

        best = first.softmax(0).topk(4)
        return {
            "prompt": prompt,
            "ids": ids,
            "pieces": [piece(token) for token in ids],
            "vocab_size": len(first),
            "best": [
                [piece(t), round(float(first[t]), 2), round(p, 4)]
                for t, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            ],
            "chosen": greedy[0],
            "text": [piece(token) for token in greedy],
            "top_p": {
                "prompt": story,
                "temperature": params.temperature,
                "top_p": params.top_p,
                "count": count,
                "drawn": piece(drawn),
                "best": [
                    [piece(t), round(p, 4), round(r, 4)]
                    for t, p, r in zip(
                        probs.indices[: count + 4].tolist(),
                        probs.values[: count + 4].tolist(),
                        reached[: count + 4].tolist(),
                        strict=True,
                    )
                ],
            },
        }
