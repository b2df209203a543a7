"""From tokens to text, piece by piece."""

from __future__ import annotations

import re
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

_BYTE_TOKEN = re.compile(r"<0x[0-9A-Fa-f]{2}>")


class Detokenizer:
    """The text that a completion adds to its prompt: the pieces joined are the whole text.

    All tokens are decoded together, so that the prompt's text and the completion are the decoded
    whole. On their own some tokens decode to something else: the first word loses the space
    before it in many vocabularies, and a character that the prompt began lacks its first bytes.
    Each call decodes everything again.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt_ids: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._ids = list(prompt_ids)
        self._prompt = decode(tokenizer, prompt_ids)
        # Without the marks of a character that the prompt has begun: it comes with its last token.
        self._num_sent = len(self._prompt.rstrip("\ufffd"))

    def push(self, token_ids: Sequence[int], *, finished: bool) -> str:
        """The text that these tokens complete; with `finished`, all that was held back as well."""
        self._ids += token_ids
        text = decode(self._tokenizer, self._ids) if finished else self._stable_text()
        if text.startswith(self._prompt):  # its last character was whole, or stays broken
            self._num_sent = max(self._num_sent, len(self._prompt))
        piece = text[self._num_sent :]
        self._num_sent += len(piece)
        return piece

    def _stable_text(self) -> str:
        """The text so far, without the end that a later token can still change.

        U+FFFD at the end is most likely the first bytes of a character. A run of byte tokens
        (`<0xF0>`, in vocabularies with byte fallback) is one text or, with one invalid byte in
        it, U+FFFD throughout: nothing of it is certain before it ends. Tokens without a text, such
        as special ones, do not end it.
        """
        end = len(self._ids)
        while end > 0 and self._may_belong_to_a_run(self._ids[end - 1]):
            end -= 1
        return decode(self._tokenizer, self._ids[:end]).rstrip("\ufffd")

    def _may_belong_to_a_run(self, token_id: int) -> bool:
        token = self._tokenizer.convert_ids_to_tokens(token_id)
        text = decode(self._tokenizer, [token_id])
        # In a vocabulary without byte fallback these six characters are a text like any other.
        is_byte = _BYTE_TOKEN.fullmatch(token or "") is not None and text != token
        return is_byte or not text


def decode(tokenizer: PreTrainedTokenizerBase, token_ids: Sequence[int]) -> str:
    """The text of tokens, special ones left out and spaces as they are."""
    return tokenizer.decode(
        list(token_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
