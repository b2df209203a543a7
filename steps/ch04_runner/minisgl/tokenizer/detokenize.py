"""From tokens to text."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase


def completion(
    tokenizer: PreTrainedTokenizerBase, prompt_ids: Sequence[int], token_ids: Sequence[int]
) -> str:
    """The text that `token_ids` add to a prompt: the prompt's text and it are the decoded whole.

    On their own some tokens decode to something else: the first word loses the space before it
    in many vocabularies, and a character that the prompt began lacks its first bytes.
    """
    prompt, whole = decode(tokenizer, prompt_ids), decode(tokenizer, [*prompt_ids, *token_ids])
    # Where the answer completes a character, the mark of its beginning is gone from the whole.
    begun = prompt if whole.startswith(prompt) else prompt.rstrip("\ufffd")
    return whole[len(begun) :]


def decode(tokenizer: PreTrainedTokenizerBase, token_ids: Sequence[int]) -> str:
    """The text of tokens, special ones left out and spaces as they are."""
    return tokenizer.decode(
        list(token_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
