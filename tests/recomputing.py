"""The oracle of the KV caches: transformers, computing a whole text again for each token."""

from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM


def recomputed(folder: Path, prompts: Sequence[list[int]], max_tokens: int) -> list[list[int]]:
    """The greedy tokens that follow each prompt; what was asked before is known."""
    return [list(_answer(folder, tuple(prompt), max_tokens)) for prompt in prompts]


@cache
def _answer(folder: Path, prompt: tuple[int, ...], max_tokens: int) -> tuple[int, ...]:
    ids = list(prompt)
    for _ in range(max_tokens):
        with torch.inference_mode():
            logits = _model(folder)(torch.tensor([ids]), use_cache=False, logits_to_keep=1).logits
        ids.append(int(logits[0, -1].argmax()))
    return tuple(ids[len(prompt) :])


@lru_cache(maxsize=1)
def _model(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
