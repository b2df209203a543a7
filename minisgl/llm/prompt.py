"""What users may pass as prompts, checked and turned into token ids."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from minisgl.core import SamplingParams

Message = Mapping[str, Any]
Prompt = str | Sequence[int] | Sequence[Message]


def as_prompts(prompts: Prompt | Sequence[Prompt]) -> list[Any]:
    """A list of prompts, even where a single one was given: what begins with an id or a message.

    Raises:
        ValueError: neither a string nor a list.
    """
    if isinstance(prompts, str):
        return [prompts]
    if not isinstance(prompts, list | tuple):
        raise ValueError(f"prompts must be a string or a list, got {reprlib.repr(prompts)}")
    return [prompts] if isinstance((*prompts, None)[0], int | Mapping) else list(prompts)


def paired(
    prompts: list[Prompt], sampling_params: SamplingParams | Sequence[SamplingParams] | None
) -> list[tuple[Prompt, SamplingParams]]:
    """Each prompt with its parameters: one for all, one each, or the defaults for None.

    Raises:
        ValueError: they are something else, or there are not as many.
    """
    given: Any = SamplingParams() if sampling_params is None else sampling_params
    each = given if isinstance(given, list | tuple) else [given] * len(prompts)
    if len(each) != len(prompts) or not all(isinstance(p, SamplingParams) for p in each):
        raise ValueError(
            f"sampling_params must be one SamplingParams for all prompts or a list of "
            f"{len(prompts)}, one per prompt, got {reprlib.repr(given)}"
        )
    return list(zip(prompts, each, strict=True))


def is_chat(prompt: object) -> bool:
    """Whether a prompt is a list of messages."""
    return isinstance(prompt, list | tuple) and {isinstance(m, Mapping) for m in prompt} == {True}


def encode(prompt: Prompt, tokenizer: PreTrainedTokenizerBase, vocab_size: int) -> list[int]:
    """The token ids of a prompt.

    Raises:
        ValueError: no prompt, no tokens, ids outside the vocabulary, or messages that the
            model's chat template refuses.
    """
    if isinstance(prompt, str):
        prompt.encode()  # a ValueError for half a surrogate pair; tokenizers raise a TypeError
        ids = tokenizer(prompt)["input_ids"]
    elif is_chat(prompt):
        ids = _apply_chat_template(prompt, tokenizer)
    elif isinstance(prompt, list | tuple) and all(type(token_id) is int for token_id in prompt):
        ids = list(prompt)
    else:
        raise ValueError(
            "a prompt must be a string, a list of token ids or a list of messages, "
            f"got {reprlib.repr(prompt)}"
        )
    if not ids:
        raise ValueError("a prompt must hold at least one token, this one is empty")
    wrong = next((token_id for token_id in ids if not 0 <= token_id < vocab_size), None)
    if wrong is not None:
        raise ValueError(
            f"token ids must be from 0 to {vocab_size - 1}, got {wrong}: use this model's tokenizer"
        )
    return ids


def _apply_chat_template(messages: Any, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    if not tokenizer.chat_template:
        raise ValueError("this model has no chat template: pass the prompt as a string")
    try:
        # The template writes its own special tokens; tokenising its text would add a second BOS.
        encoded = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    except Exception as error:  # a template is a program, and raises what it likes
        raise ValueError(f"the model's chat template refused these messages: {error}") from error
    return list(encoded["input_ids"])
