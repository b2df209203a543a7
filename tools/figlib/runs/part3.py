"""Recorder of chapter 9."""

import math
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))  # behind the tree of the step

from tools.figlib.runs.listening import Trace

ALONE, GROUPS = 400, 60


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

    def count(temperature: float = 1.0, **filters: Any) -> int:
        """How many tokens the engine would choose from."""
        one = SamplingParams(temperature=temperature, **filters)
        columns = make_filters([one], [0.0], scores.shape[1], torch.device("cpu"))
        return int((filtered_probs(scores, columns) > 0).sum())

    sorted_scores = (scores[0] - scores[0].max()).double().sort(descending=True).values
    settings = ((0.5, 0, 0.9), (0.7, 20, 0.95), (1.0, 50, 0.8), (1.4, 100, 0.5), (1.0, 0, 0.7))
    return {
        "prompt": prompt,
        "best": [[p, round(v, 4)] for p, v in zip(pieces, best.values.tolist(), strict=True)],
        "filters": filters,
        "kept": {name: count(**{name: value}) for name, value in filters.items()},
        # For the reader's own settings: the best scores one by one, the others in groups whose
        # members differ little.
        "all": {
            "scores": [round(score, 3) for score in sorted_scores[:ALONE].tolist()],
            "groups": [
                [len(part), round(part.logsumexp(0).sub(math.log(len(part))).item(), 3)]
                for part in sorted_scores[ALONE:].chunk(GROUPS)
            ],
        },
        "checks": [[*one, count(one[0], top_k=one[1] or -1, top_p=one[2])] for one in settings],
        "numbers": {
            seed: [round(uniform(seed, index), 3) for index in range(5)] for seed in (1, 2)
        },
    }


def demo(_: None) -> Trace:
    """What `make demo` prints, piece by piece."""
    import _step

    from minisgl import LLM, SamplingParams
    from tools.demo import QUESTIONS

    answers = []
    with LLM(_step.model_dir()) as llm:
        for question in QUESTIONS:
            message = {"role": "user", "content": question}
            pieces = [*llm.stream([message], SamplingParams(max_tokens=64))]
            more = [" …"] if pieces[-1].finish_reason == "length" else []
            answers.append([question, [piece.text for piece in pieces if piece.text] + more])
    return {"answers": answers}
