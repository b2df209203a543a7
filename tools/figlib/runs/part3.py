"""Recorder of chapter 9."""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))  # behind the tree of the step

from tools.figlib.runs.listening import Trace


def ready() -> None:
    """The processes of the step need no setting up."""


def ch09_sampler(_: None) -> Trace:
    """What three filters keep of a real distribution, and the numbers of two seeds."""
    import _step

    import torch

    from minisgl import LLM, SamplingParams
    from minisgl.engine import engine
    from minisgl.engine.randomness import uniform
    from minisgl.engine.sample import filtered_probs, make_filters

    prompt = "My favourite colour is"
    filters: dict[str, Any] = {"top_k": 3, "top_p": 0.7, "min_p": 0.1}
    seen: list[torch.Tensor] = []
    original = engine.sample

    def sample(logits: torch.Tensor, *args: Any) -> torch.Tensor:
        seen.append(logits)
        return original(logits, *args)

    setattr(engine, "sample", sample)  # noqa: B010  (an assignment would need its type)
    with LLM(_step.model_dir()) as llm:
        llm.generate(prompt, SamplingParams(max_tokens=1))
        [scores] = seen
        best = scores[0].softmax(-1).topk(20)
        pieces = [llm.tokenizer.decode([token_id]) for token_id in best.indices.tolist()]
    kept = {}
    for name, value in filters.items():
        one = SamplingParams(temperature=1.0, **{name: value})
        columns = make_filters([one], [0.0], scores.shape[1], torch.device("cpu"))
        probs = filtered_probs(scores, columns)
        kept[name] = int((probs > 0).sum())
    return {
        "prompt": prompt,
        "best": [[p, round(v, 4)] for p, v in zip(pieces, best.values.tolist(), strict=True)],
        "filters": filters,
        "kept": kept,
        "numbers": {
            seed: [round(uniform(seed, index), 3) for index in range(5)] for seed in (1, 2)
        },
    }
