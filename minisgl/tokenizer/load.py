"""The tokenizer of a model folder, and the tokens that end its answers."""

from __future__ import annotations

from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from minisgl.models.config import read_json


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer in `folder`.

    Raises:
        ValueError: there is none, or using it would run code of the folder's own.
    """
    file = folder / "tokenizer.json"
    if not file.is_file():  # transformers would make one that knows next to no tokens
        raise ValueError(f"a model folder must hold tokenizer.json, {folder} has none")
    try:
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # its errors are of many kinds
        raise ValueError(f"{file} does not load as a tokenizer: {error}") from error


def eos_token_ids(folder: Path, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Every token that the model, its generation settings or its tokenizer call the end.

    They disagree in real checkpoints: a chat model often ends its turn with a token that only
    one of the three names, and would run on to its length limit.

    Raises:
        ValueError: a file names something other than token ids.
    """
    found = set() if tokenizer.eos_token_id is None else {tokenizer.eos_token_id}
    for name in ("config.json", "generation_config.json"):
        ids = read_json(folder / name).get("eos_token_id")
        ids = ids if isinstance(ids, list) else [] if ids is None else [ids]
        if not all(type(token_id) is int for token_id in ids):
            raise ValueError(f"eos_token_id in {name} must be one token id or a list, got {ids}")
        found.update(ids)
    return frozenset(found)
