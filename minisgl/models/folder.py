"""Where a model's files are."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError

_FILES = ["*.json", "*.safetensors", "*.jinja"]
_SECOND_COPY = ["consolidated*.safetensors"]  # the same weights, for another program


def resolve_model(model: str | Path) -> Path:
    """The folder of a model; one of the hub is downloaded first, or found in the hub's cache.

    Raises:
        ValueError: neither a folder nor a repository that the hub could give.
    """
    if not isinstance(model, str | Path):
        raise ValueError(f"the model must be a folder or the name of a repository, got {model!r}")
    try:
        folder = Path(model).expanduser()
        if folder.is_dir():
            return folder
        return Path(
            snapshot_download(str(model), allow_patterns=_FILES, ignore_patterns=_SECOND_COPY)
        )
    except (HFValidationError, OSError, RuntimeError) as error:  # the last: ~nobody has no home
        raise ValueError(
            f"the model must be a folder or a repository of the Hugging Face hub, {model} is not "
            f"a folder here and the hub did not send it ({type(error).__name__}): check the name"
        ) from error
