"""How an engine is set up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError

DEFAULT_MAX_SEQ_LEN = 8192
_FILES = ["*.json", "*.safetensors", "*.jinja", "tokenizer.model"]
_SECOND_COPY = ["consolidated*.safetensors"]  # the same weights, for another program


@dataclass(frozen=True)
class EngineConfig:
    """What to load and how to compute it.

    `model` is a Hugging Face folder or a repository of the hub. `dtype` None means fp32 on a
    CPU, whose 16-bit products are slow, and bf16 on a GPU. `seed` is the root of the seeds of
    all requests that bring none.

    At most `max_running_reqs` requests run at once, none longer than `max_seq_len` tokens (None:
    the model's context, but no more than 8192). Their KV lies in `num_pages` pages of `page_size`
    tokens (None: pages for four of the longest).
    """

    model: str | Path
    device: str = "cpu"
    dtype: torch.dtype | None = None
    seed: int = 0
    max_running_reqs: int = 32
    max_seq_len: int | None = None
    page_size: int = 16
    num_pages: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for sizes that leave no room for a request."""
        # A request has a prompt's token and a new one.
        least = {"max_running_reqs": 1, "max_seq_len": 2, "page_size": 1, "num_pages": 1}
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise ValueError(f"{name} must be at least {low}, got {value}")
        if self.num_pages is not None and self.num_pages * self.page_size < 2:
            raise ValueError(
                f"the pool must hold at least 2 tokens, got {self.num_pages} page of "
                f"{self.page_size}: raise num_pages or page_size"
            )

    @property
    def compute_dtype(self) -> torch.dtype:
        """`dtype`, or what suits the device."""
        if self.dtype is not None:
            return self.dtype
        is_cpu = torch.device(self.device).type == "cpu"
        return torch.float32 if is_cpu else torch.bfloat16


def resolve_model(model: str | Path) -> Path:
    """The folder of a model; one of the hub is downloaded first, or found in the hub's cache.

    Raises:
        ValueError: neither a folder nor a repository that the hub could give.
    """
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
