"""What users may pass as prompts, checked and turned into token ids."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

Message = Mapping[str, Any]
Prompt = str | Sequence[int] | Sequence[Message]
_PROMPT_KINDS = ("string", "list of token ids", "list of messages")


def as_prompts(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """A list of prompts, also where a single one was given.

    Raises:
        ValueError: the list mixes kinds, or holds what is no prompt.
    """
    if isinstance(prompts, str):
        return [prompts]
    if not isinstance(prompts, list | tuple):
        raise ValueError(f"prompts must be a string or a list, got {reprlib.repr(prompts)}")
    kind = _common_kind(prompts, _kind)
    if kind in ("token id", "message"):
        return [prompts]  # one prompt, whose items these are
    return list(prompts)


def checked(prompt: Prompt, *kinds: str) -> Prompt:
    """`prompt` itself, a single one; of `kinds`, where they are given.

    Raises:
        ValueError: it is of no such kind.
    """
    kinds = kinds or _PROMPT_KINDS
    if _kind(prompt) not in kinds:
        raise ValueError(f"one {' or '.join(kinds)} is expected here, got {reprlib.repr(prompt)}")
    return prompt


def _common_kind(items: Sequence[object], of: Callable[[object], str]) -> str | None:
    """What the items all are, by `of`; None for no items."""
    kinds = [of(item) for item in items]
    for index, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise ValueError(
                f"a list must not mix kinds: item 0 is a {kinds[0]}, item {index} is a {kind} "
                f"({reprlib.repr(items[index])}); make one call per kind"
            )
    return kinds[0] if kinds else None


def _kind(item: object) -> str:
    """What a prompt is, or a part of one."""
    # Not any sequence: bytes are one of integers, and were meant as text.
    if isinstance(item, list | tuple):
        return f"list of {_common_kind(item, _part_kind) or 'token id'}s"
    return "string" if isinstance(item, str) else _part_kind(item)


def _part_kind(item: object) -> str:
    if isinstance(item, int) and not isinstance(item, bool):
        return "token id"
    if isinstance(item, Mapping):
        return "message"
    raise ValueError(
        "a prompt must be a string, a list of token ids or a list of messages, "
        f"got {reprlib.repr(item)}"
    )


def encode(prompt: Prompt, tokenizer: PreTrainedTokenizerBase, vocab_size: int) -> list[int]:
    """The token ids of a prompt.

    Raises:
        ValueError: no tokens, ids outside the vocabulary, or messages that the model's chat
            template refuses.
    """
    if isinstance(prompt, str):
        prompt.encode()  # a ValueError for half a surrogate pair; tokenizers raise a TypeError
        ids = tokenizer(prompt)["input_ids"]
    elif _kind(prompt) == "list of messages":
        ids = _apply_chat_template(prompt, tokenizer)
    else:
        ids = prompt
    if not ids:
        raise ValueError("a prompt must hold at least one token, this one is empty")
    for token in ids:
        if not 0 <= token < vocab_size:
            raise ValueError(
                f"token ids must be from 0 to {vocab_size - 1}, the vocabulary's end, got {token}: "
                "use this model's tokenizer"
            )
    return list(ids)


def _apply_chat_template(messages: Any, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    if not tokenizer.chat_template:
        raise ValueError("this model has no chat template: pass the prompt as a string")
    try:
        # The template writes its own special tokens; tokenising its text would add a second BOS.
        encoded = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    except Exception as error:  # a template is a program, and raises what it likes
        raise ValueError(f"the model's chat template refused these messages: {error}") from error
    return encoded["input_ids"]
