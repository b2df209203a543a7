"""How an engine is set up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError

DEFAULT_MAX_SEQ_LEN = 8192
_FILES = ["*.json", "*.safetensors", "*.jinja", "tokenizer.model"]
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_SECOND_COPY = ["consolidated*.safetensors"]  # the same weights, for another program


@dataclass(frozen=True)
class EngineConfig:
    """What to load and how to compute it.

    `model` is a Hugging Face folder or a repository of the hub. `dtype` None means fp32 on a
    CPU, whose 16-bit products are slow, and bf16 on a GPU. `seed` is the root of the seeds of
    all requests that bring none. The KV cache has `max_running_reqs` rows of `max_seq_len` tokens;
    None for the latter means the model's context, but no more than 8192 tokens.
    """

    model: str | Path
    device: str = "cpu"
    dtype: torch.dtype | None = None
    seed: int = 0
    max_running_reqs: int = 4
    max_seq_len: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for what this machine cannot compute, or what no request fits in."""
        _check_compute(self.device, self.dtype)
        # A request has a prompt's token and a new one.
        for name, low in {"max_running_reqs": 1, "max_seq_len": 2}.items():
            value = getattr(self, name)
            if name == "max_seq_len" and value is None:
                continue
            if type(value) is not int or value < low:
                raise ValueError(f"{name} must be an integer of at least {low}, got {value!r}")

    @property
    def compute_dtype(self) -> torch.dtype:
        """`dtype`, or what suits the device."""
        if self.dtype is not None:
            return self.dtype
        is_cpu = torch.device(self.device).type == "cpu"
        return torch.float32 if is_cpu else torch.bfloat16


def _check_compute(device: str, dtype: torch.dtype | None) -> None:
    if dtype is not None and dtype not in _DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(map(str, _DTYPES))}, got {dtype!r}")
    try:
        torch.empty(0, device=torch.device(device))
    except Exception as error:  # of another kind for every device that is not there
        raise ValueError(
            f"device must be one that torch can use here, such as 'cpu', got {device!r}: "
            f"{str(error).splitlines()[0]}"
        ) from error


def resolve_model(model: str | Path) -> Path:
    """The folder of a model; one of the hub is downloaded first, or found in the hub's cache.

    Raises:
        ValueError: neither a folder nor a repository that the hub could give.
    """
    if not isinstance(model, str | Path):
        raise ValueError(f"the model must be a folder or the name of a repository, got {model!r}")
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    try:
        return Path(
            snapshot_download(str(model), allow_patterns=_FILES, ignore_patterns=_SECOND_COPY)
        )
    except (HFValidationError, OSError) as error:
        raise ValueError(
            f"the model must be a folder or a repository of the Hugging Face hub, {model} is no "
            f"folder here and the hub did not give it ({type(error).__name__}): check the name"
        ) from error
